/* One rank's file of a checkpoint. */
#ifndef DT_CHECKPOINT_SHARD_H
#define DT_CHECKPOINT_SHARD_H

#include "runtime/base/file.h"
#include "runtime/checkpoint/format.h"
#include "runtime/checkpoint/names.h"

/* Writes the head and the buffers it names. Stores in info what the manifest says about the
 * file. */
dt_result_t dt_shard_write(const struct dt_dir *d, const struct dt_shard_head *head,
                           struct dt_shard_info *info);

/* A shard that is being read, once, in two steps. */
struct dt_shard {
    struct dt_name name;
    struct dt_file file;
    const struct dt_shard_head *wanted;
    const struct dt_shard_info *info;
};

/* Opens the shard of wanted->rank and reads its head; no buffer changes. DT_ERR_IO: it cannot be
 * read, or is damaged; another checkpoint may do. DT_ERR_MISMATCH: it is sound, but the program has
 * registered other buffers. d, wanted and info must stay until dt_shard_close. */
dt_result_t dt_shard_open(struct dt_shard *s, const struct dt_dir *d,
                          const struct dt_shard_head *wanted, const struct dt_shard_info *info);
/* Reads the rest into the buffers. DT_ERR_IO: as above; their content is unspecified then. */
dt_result_t dt_shard_load(struct dt_shard *s);
void dt_shard_close(struct dt_shard *s); /* does nothing if it was not opened */

#endif
