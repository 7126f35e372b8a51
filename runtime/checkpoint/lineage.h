/* Whose checkpoints a directory holds. The file LINEAGE names the job that has saved there last,
 * and the lineage: an id that is drawn when a job saves the first checkpoint in a directory, or
 * begins afresh there, and that each job which goes on from there carries on. A job writes the file
 * before its first checkpoint gets its name.
 *
 * LINEAGE lies beside the checkpoints, not in them: their bytes depend on step, ranks and data
 * alone, so that those of a disturbed and of an undisturbed job can be compared. */
#ifndef DT_CHECKPOINT_LINEAGE_H
#define DT_CHECKPOINT_LINEAGE_H

#include <stdbool.h>

#include "runtime/base/file.h"
#include "runtime/checkpoint/format.h"
#include "runtime/checkpoint/holder.h"

#define DT_LINEAGE_NAME "LINEAGE"

enum { DT_LINEAGE_ID = 16 };

/* All empty: nothing says whose the checkpoints are. */
struct dt_lineage {
    char id[DT_LINEAGE_ID + 1];
    struct dt_holder job;
};

/* What a job finds in a directory. */
struct dt_head {
    int64_t step;           /* of the newest checkpoint; -1: there is none */
    struct dt_checksum sum; /* of its manifest's bytes; zeros where they cannot be read */
    struct dt_lineage line;
};

/* step: the newest one's, or -1. */
dt_result_t dt_head_read(struct dt_head *h, const struct dt_dir *d, int64_t step);
dt_result_t dt_lineage_read(struct dt_lineage *l, const struct dt_dir *d);
bool dt_lineage_is_of(const struct dt_lineage *l, const struct dt_owner *me);
bool dt_lineage_equal(const struct dt_lineage *a, const struct dt_lineage *b);

/* Whether a job may restore what it has found. It may go on from its own checkpoints, and from
 * those of others with the user's word. DT_ERR_STATE says which word that is. */
dt_result_t dt_lineage_may_restore(const struct dt_head *found, const struct dt_dir *d,
                                   const struct dt_owner *me, bool word);
/* Whether a job, which has locked the directory, may make its first checkpoint there the newest.
 * Those that are there must be its own, or the ones that it has found (NULL: none) when it
 * restored. DT_ERR_STATE names whose they are. */
dt_result_t dt_lineage_may_save(const struct dt_head *now, const struct dt_head *found,
                                const struct dt_dir *d, const struct dt_owner *me);

/* Draws an id. */
dt_result_t dt_lineage_begin(struct dt_lineage *l);
/* Makes the file say l, or removes it where l is empty. */
dt_result_t dt_lineage_write(const struct dt_lineage *l, const struct dt_dir *d,
                             const struct dt_owner *me);

#endif
