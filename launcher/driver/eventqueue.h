/* Queues events of the user's streams for the engine. Many occur while the engine acts, for example
 * when output is shown at once. No op may call back into the engine (launcher/job/ops.h), so the
 * events wait for the loop. */
#ifndef DT_DRIVER_EVENTQUEUE_H
#define DT_DRIVER_EVENTQUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "launcher/job/job.h"

struct dt_eventqueue_failure {
    char *what;
    int error;
};

struct dt_eventqueue {
    struct dt_job *job;
    uint32_t nprocs;
    /* Bytes by stream: standard output of all processes, then their standard error. */
    size_t *shown;
    uint32_t *streams; /* the streams with bytes in shown, in order */
    size_t nstreams;
    struct dt_eventqueue_failure *failures;
    size_t nfailures;
    bool moved;     /* dt_job_output_moved is due */
    uv_idle_t idle; /* active while events wait */
};

/* These queue the engine's events of the same names (launcher/job/job.h) until the loop's next
 * iteration. */
void dt_eventqueue_shown(struct dt_eventqueue *q, uint32_t number, int fd, size_t bytes);
void dt_eventqueue_output_moved(struct dt_eventqueue *q);
void dt_eventqueue_output_failed(struct dt_eventqueue *q, const char *what, int error);

void dt_eventqueue_open(struct dt_eventqueue *q, uv_loop_t *loop, uint32_t nprocs,
                        struct dt_job *job);
void dt_eventqueue_close(struct dt_eventqueue *q); /* before the loop ends; drops waiting events */
void dt_eventqueue_free(struct dt_eventqueue *q);  /* after the loop has ended */

#endif
