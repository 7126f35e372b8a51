/* Lists a checkpoint directory. */
#ifndef DT_CHECKPOINT_LISTING_H
#define DT_CHECKPOINT_LISTING_H

#include "runtime/base/checksum.h"
#include "runtime/base/file.h"
#include "runtime/checkpoint/names.h"

/* Entries of a kind. */
struct dt_listing {
    const struct dt_owner *owner;
    enum dt_entry_kind kind;
    struct dt_name *names;
    int64_t *steps;
    size_t n;
};

/* The caller calls dt_listing_free, also after a failure. */
dt_result_t dt_listing_read(struct dt_listing *l, const struct dt_dir *d,
                            const struct dt_owner *owner, enum dt_entry_kind kind);
void dt_listing_free(struct dt_listing *l);

#define DT_MANIFEST_NAME "MANIFEST"

struct dt_steps {
    int64_t *v;
    size_t n;
};

/* The committed steps, newest first; the caller frees v. */
dt_result_t dt_steps_list(struct dt_steps *steps, const struct dt_dir *d,
                          const struct dt_owner *owner);
/* Likewise, with the steps of which only the older version exists, because the job ended while it
 * saved them again. */
dt_result_t dt_steps_list_restorable(struct dt_steps *steps, const struct dt_dir *d,
                                     const struct dt_owner *owner);
/* Likewise, only that step. */
dt_result_t dt_steps_list_one(struct dt_steps *steps, int64_t step);
/* Opens the directory of such a step. */
dt_result_t dt_steps_open(struct dt_dir *from, const struct dt_dir *d, int64_t step);
/* The checksum of its manifest's bytes, whether they are valid or not. */
dt_result_t dt_steps_sum(struct dt_checksum *sum, const struct dt_dir *from);

#endif
