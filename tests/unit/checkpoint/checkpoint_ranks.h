/* Ranks for tests of the checkpoint store: threads of one process that synchronise by a barrier. */
#ifndef TESTS_UNIT_CHECKPOINT_CHECKPOINT_RANKS_H
#define TESTS_UNIT_CHECKPOINT_CHECKPOINT_RANKS_H

#include <pthread.h>
#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/checkpoint/store.h"

enum { RANKS_MAX = 4, WORDS = 1000 };

struct job;

struct rank {
    struct job *job;
    pthread_t thread;
    struct dt_store store;
    int64_t weights[WORDS]; /* registered as "weights" */
    double loss;            /* registered as "loss" */
    struct dt_buffers buffers;
    dt_result_t result;
    int64_t step; /* from restore */
    char text[DT_ERROR_TEXT];
};

struct job {
    uint32_t size;
    struct rank ranks[RANKS_MAX];
    pthread_barrier_t barrier;
    int64_t *words[RANKS_MAX]; /* what each rank contributed to a collective */
    int64_t committed;         /* the last step that rank 0 reported, or -1 */
    int notes;
    char note[1024]; /* the last note */
};

/* Fills every rank's buffers with values that depend on rank and fill. */
void job_init(struct job *j, uint32_t size, const char *dir, uint32_t generation, int64_t fill);
void job_free(struct job *j);
void job_fill(struct job *j, int64_t fill);
/* Whether every rank's buffers are as job_fill left them. */
bool job_holds(const struct job *j, int64_t fill);

/* Makes one collective on all ranks. Returns their common result, and fails the test if it
 * differs. */
dt_result_t job_save(struct job *j, int64_t step);
dt_result_t job_save_steps(struct job *j, const int64_t *steps); /* each rank saves its own step */
dt_result_t job_restore(struct job *j, int64_t *step);

/* In dir a job has just saved step, with which it began anew. Makes of dir what it was when the job
 * had not set the older checkpoints aside yet, which were of that lineage. */
void job_undo_setting_aside(const char *dir, int64_t step, const struct dt_lineage *before);

#endif
