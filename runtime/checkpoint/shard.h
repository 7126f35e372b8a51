/* One rank's file of a checkpoint. */
#ifndef DT_CHECKPOINT_SHARD_H
#define DT_CHECKPOINT_SHARD_H

#include "runtime/checkpoint/file.h"

/* Writes the head and the buffers it names; info then tells what the manifest says of the file. */
dt_result_t dt_shard_write(const struct dt_dir *d, const struct dt_shard_head *head,
                           struct dt_shard_info *info);

enum dt_shard_use {
    DT_SHARD_CHECK, /* read it all, leave the buffers alone */
    DT_SHARD_LOAD,  /* fill the buffers */
};

/* Reads the shard of wanted->rank. DT_ERR_IO: it cannot be read, or is damaged; another checkpoint
 * may do. DT_ERR_MISMATCH: it is sound, but the program has registered other buffers. */
dt_result_t dt_shard_read(const struct dt_dir *d, const struct dt_shard_head *wanted,
                          const struct dt_shard_info *info, enum dt_shard_use use);

#endif
