/* The file LINEAGE, which says to whom a directory's checkpoints belong:
 *
 *     lineage 0123456789abcdef
 *     job ...                           the job that has saved there last, as in OWNER
 *     before                            the lineage and job before that, and
 *     lineage ...
 *     job ...
 *     begins step 5 manifest 0123...    the first checkpoint of a job that begins anew
 *
 * A job that begins anew (--fresh) writes the last four entries, gives its first checkpoint its
 * name, sets all other checkpoints aside, and removes these entries again. Until that checkpoint
 * has its name, the lineage and job after "before" count. From then on, it is the only checkpoint
 * of the new lineage. */
#ifndef DT_CHECKPOINT_LINEAGE_FILE_H
#define DT_CHECKPOINT_LINEAGE_FILE_H

#include "runtime/base/checksum.h"
#include "runtime/base/file.h"
#include "runtime/checkpoint/holder.h"

#define DT_LINEAGE_NAME "LINEAGE"

enum { DT_LINEAGE_ID = 16 };

/* All empty: nothing says to whom the checkpoints belong. */
struct dt_lineage {
    char id[DT_LINEAGE_ID + 1];
    struct dt_holder job;
};

struct dt_beginning {
    int64_t step;           /* -1: no job is about to begin anew */
    struct dt_checksum sum; /* of the manifest's bytes: an older one may have the same name */
    struct dt_lineage before;
};

struct dt_lineage_file {
    struct dt_lineage line;
    struct dt_beginning begins;
};

/* A damaged file names nobody, as if there were none. One that cannot be read is an error: the
 * caller may be about to replace it. */
dt_result_t dt_lineage_file_read(struct dt_lineage_file *f, const struct dt_dir *d);
/* Replaces the file, or removes it if f->line is empty. */
dt_result_t dt_lineage_file_write(const struct dt_lineage_file *f, const struct dt_dir *d,
                                  const struct dt_owner *me);

#endif
