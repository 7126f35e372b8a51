/* A directory of checkpoints, used by all ranks of a job together.
 *
 * A save writes all shards into a directory with a temporary name. When every rank's shard is
 * durable, rank 0 adds the manifest and renames the directory: that is the commit. So a directory
 * with a final name is complete, whatever dies at whatever time. A restore takes the newest
 * checkpoint that every rank finds sound. */
#ifndef DT_CHECKPOINT_STORE_H
#define DT_CHECKPOINT_STORE_H

#include "runtime/base/file.h"
#include "runtime/checkpoint/format.h"
#include "runtime/checkpoint/group.h"
#include "runtime/checkpoint/lineage.h"
#include "runtime/checkpoint/listing.h"
#include "runtime/checkpoint/names.h"
#include "runtime/checkpoint/owner.h"

enum { DT_CHECKPOINTS_KEPT = 2 };

struct dt_store {
    struct dt_group group;
    const char *path;
    const char *host; /* this rank's, for messages */
    bool leads_host;  /* this rank answers for what its host sees */
    uint32_t hosts;   /* on which there are ranks */
    bool chosen;      /* path is not the default, so the job will probably save there */
    struct dt_owner owner;
    bool fresh;  /* the first commit sets aside what the directory held before */
    bool resume; /* this job may continue from other jobs' checkpoints */

    /* Called on rank 0 alone. */
    void *arg;
    void (*committed)(void *arg, int64_t step);
    void (*note)(void *arg, const char *text); /* for the user */

    /* Rank 0's. */
    struct dt_ownership ownership;
    bool has_found;            /* a restore has set what follows */
    struct dt_head found;      /* what the directory held */
    struct dt_lineage lineage; /* of this job's checkpoints, once the directory is ready */
    bool has_committed;        /* this generation has committed, so LINEAGE names the job */

    bool ready;      /* the directory is this job's; it was checked and tidied */
    bool visible;    /* a restore has found nothing, and checked that hosts share the directory */
    uint32_t saves;  /* number of saves so far: each has its own temporary name */
    uint32_t drops;  /* number of entries dropped so far, likewise */
    uint32_t asides; /* number of directories made for what is set aside */
};

/* All are collective: every rank returns the same result. */

/* The error of a save of a negative step. */
dt_result_t dt_store_fail_step(int64_t step);
/* Commits the buffers as step. After a failure the older checkpoints are unchanged. */
dt_result_t dt_store_save(struct dt_store *s, const struct dt_buffers *buffers, int64_t step);
/* Fills the buffers from the newest sound checkpoint; *step is -1 if there is none. After an error
 * the content of the buffers is unspecified. */
dt_result_t dt_store_restore(struct dt_store *s, const struct dt_buffers *buffers, int64_t *step);

/* Shared by save and restore. */

/* On rank 0, without a lock: lists what the directory holds. The caller frees steps->v, also after
 * a failure. */
dt_result_t dt_store_list(const struct dt_store *s, const struct dt_dir *d, struct dt_steps *steps,
                          struct dt_head *head);
/* Takes the directory for this job, or checks that this job still has it; rank 0 makes it if it is
 * missing. The first time, rank 0 also checks that this job may save there and tidies it, and all
 * ranks check that every host sees it. */
dt_result_t dt_store_open(struct dt_store *s, struct dt_dir *d);
/* Renames an entry to trash, which no job reads, and removes it if that is possible: it may belong
 * to another user. */
void dt_store_drop(struct dt_store *s, const struct dt_dir *d, const char *name, int64_t step);
/* On rank 0: whether this job was told to begin anew (--fresh) and has not committed a checkpoint
 * yet, so that all checkpoints in the directory are older ones. */
bool dt_store_begins_anew(const struct dt_store *s);
/* Sets aside checkpoints to which a restore must not go back. When a job begins anew, these are all
 * older ones. Otherwise they are those of higher steps than the committed one: the job has gone
 * back to a lower step. They move to a directory "earlier-...", those of another user to a name
 * beside it. The committed checkpoint already has its name, so a crash leaves one to restore. The
 * caller frees aside->steps.v, also after a failure, and may undo the moves then
 * (dt_store_put_back). */
struct dt_aside {
    /* set by the caller; all else begins as zeros */
    int64_t committed;
    bool all;      /* the job begins anew */
    bool replaces; /* an older checkpoint of the committed step has the name dt_name_replaced */

    struct dt_name to;     /* empty: no directory has been made */
    struct dt_steps steps; /* to be moved */
    size_t moved;          /* number of steps that have been moved */
};
dt_result_t dt_store_set_aside(struct dt_store *s, const struct dt_dir *d, struct dt_aside *aside);
void dt_store_put_back(const struct dt_dir *d, const struct dt_aside *aside);
/* On rank 0, when no save or restore follows: releases the directory for other jobs. */
void dt_store_release(struct dt_store *s);

#endif
