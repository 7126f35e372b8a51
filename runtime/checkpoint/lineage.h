/* Whose checkpoints a directory holds. The file LINEAGE names the job that saved there last, and
 * the lineage: an id that is drawn when a job saves the first checkpoint in a directory or begins
 * anew there. A job that continues from a checkpoint keeps its lineage. A job writes the file
 * before its first checkpoint gets its name.
 *
 * LINEAGE is beside the checkpoints, not in them: their bytes depend on step, ranks and data alone,
 * so that a disturbed and an undisturbed run can be compared. */
#ifndef DT_CHECKPOINT_LINEAGE_H
#define DT_CHECKPOINT_LINEAGE_H

#include <stdbool.h>

#include "runtime/base/file.h"
#include "runtime/checkpoint/format.h"
#include "runtime/checkpoint/lineage_file.h"

/* What a job finds in a directory. */
struct dt_head {
    int64_t step;           /* of the newest checkpoint; -1: there is none */
    struct dt_checksum sum; /* of its manifest's bytes; zeros where they cannot be read */
    struct dt_lineage line;
};

/* Reads the lineage of the checkpoints. *only is -1 if all checkpoints in the directory are of that
 * lineage. If a job that begins anew has committed its first checkpoint but has not yet set the
 * others aside, *only is that checkpoint's step: no other is of the lineage. */
dt_result_t dt_lineage_read(struct dt_lineage *l, int64_t *only, const struct dt_dir *d);
/* step: of the newest checkpoint, or -1. */
void dt_head_set(struct dt_head *h, const struct dt_dir *d, int64_t step);
bool dt_lineage_is_of(const struct dt_lineage *l, const struct dt_owner *me);
bool dt_lineage_equal(const struct dt_lineage *a, const struct dt_lineage *b);

/* Whether a job may restore what it has found. It may continue from its own checkpoints, and from
 * those of another job if the user has asked for that (resume). The message of DT_ERR_STATE names
 * the options. */
dt_result_t dt_lineage_may_restore(const struct dt_head *found, const struct dt_dir *d,
                                   const struct dt_owner *me, bool resume);
/* Whether a job that has locked the directory may save its first checkpoint there. The checkpoints
 * that are there must be its own, or the ones that it found when it restored (NULL: it has not).
 * DT_ERR_STATE names the job to which they belong. */
dt_result_t dt_lineage_may_save(const struct dt_head *now, const struct dt_head *found,
                                const struct dt_dir *d, const struct dt_owner *me);

/* Draws an id. */
dt_result_t dt_lineage_draw_id(struct dt_lineage *l);

#endif
