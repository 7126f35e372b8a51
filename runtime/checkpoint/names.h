/* Names in a checkpoint directory, and what is to be done with them. Pure.
 *
 *     step_000000000120                     a committed checkpoint
 *     .save-JOB-gGENERATION-WHAT            a job's unfinished work
 *     .replaced-step_000000000120           the older one of a step that was saved twice
 *     .trash-...                            to be deleted, whatever it holds
 *     earlier-JOB-gGENERATION-NUMBER        set aside when JOB began afresh or saved a lower step
 *                                           than these; never touched again
 *     earlier-JOB-gGENERATION-NUMBER-step_000000000120
 *                                           likewise, one that is another user's */
#ifndef DT_CHECKPOINT_NAMES_H
#define DT_CHECKPOINT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DT_NAME_BYTES = 256 };

struct dt_name {
    char s[DT_NAME_BYTES];
};

struct dt_owner {
    const char *job_id;
    uint32_t generation;
};

enum dt_entry_kind {
    DT_ENTRY_OTHER,      /* not ours, or of a later generation */
    DT_ENTRY_CHECKPOINT, /* step is set */
    DT_ENTRY_REPLACED,   /* step is set */
    DT_ENTRY_TRASH,
    DT_ENTRY_LEFT_BEHIND, /* unfinished work of an older generation, or of another job: as this job
                           * owns the directory, nobody will finish it */
};

struct dt_entry {
    enum dt_entry_kind kind;
    int64_t step;
};

/* What a name means to a job that begins to use the directory. */
struct dt_entry dt_entry_of(const char *name, const struct dt_owner *me);

struct dt_name dt_name_checkpoint(int64_t step);
struct dt_name dt_name_replaced(int64_t step);
struct dt_name dt_name_unfinished(const struct dt_owner *me, const char *what);
/* number counts the entries that this generation drops. */
struct dt_name dt_name_trash(const struct dt_owner *me, int64_t step, uint32_t number);
/* number counts the directories that this generation makes. */
struct dt_name dt_name_earlier(const struct dt_owner *me, uint32_t number);
struct dt_name dt_name_shard(uint32_t rank);

/* Sorts steps, newest first. */
void dt_steps_sort(int64_t *steps, size_t n);
/* Moves the steps after one to the front, lowest first, and returns their number. */
size_t dt_steps_after(int64_t *steps, size_t n, int64_t step);
/* After the commit of a step: moves the steps that may be deleted to the front and returns their
 * number. Of the steps up to the committed one, the newest "keep" stay. Later steps all stay. */
size_t dt_steps_retire(int64_t *steps, size_t n, int64_t committed, size_t keep);

#endif
