/* The one job that saves in a checkpoint directory. Its rank 0 holds a lock (flock) on the file
 * OWNER there, from its first save until dt_finalize or the death of the process. A job that has
 * saved there and is started again takes the lock when it restores. OWNER also contains the job's
 * name. Another job's error message can name it. And a job notices before a commit if another one
 * has taken the directory despite the lock, because this one is an older generation that could not
 * be killed, or because locks do not reach beyond the host. */
#ifndef DT_CHECKPOINT_OWNER_H
#define DT_CHECKPOINT_OWNER_H

#include <stdbool.h>

#include "runtime/base/file.h"
#include "runtime/checkpoint/holder.h"
#include "runtime/checkpoint/names.h"

#define DT_OWNER_NAME "OWNER"

/* All zero: not held. */
struct dt_ownership {
    bool held;
    int fd;                    /* of OWNER, with the lock */
    int dir;                   /* of the directory */
    char text[DT_HOLDER_TEXT]; /* content of OWNER, as this job wrote it */
    /* the previous content, if the file system has no locks; else empty */
    char before[DT_HOLDER_TEXT];
};

/* Makes this job the owner; if it already is, does what dt_owner_check does. DT_ERR_STATE, naming
 * the owner: another job holds the lock, or a later generation of this job is or was the owner. An
 * older generation of this job loses the directory, whether it is dead or not. */
dt_result_t dt_owner_take(struct dt_ownership *o, const struct dt_dir *d, const struct dt_owner *me,
                          const char *host);
/* DT_ERR_STATE if OWNER no longer names this job. */
dt_result_t dt_owner_check(const struct dt_ownership *o, const struct dt_dir *d);
/* Removes OWNER if it still names this job, and unlocks the directory. */
void dt_owner_release(struct dt_ownership *o);
/* The same for a job that may not save after all. Without locks OWNER then names the previous job
 * again. */
void dt_owner_give_back(struct dt_ownership *o);
/* In a forked child: closes the file; only the parent keeps the lock. */
void dt_owner_forget(struct dt_ownership *o);

#endif
