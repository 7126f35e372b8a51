#include "launcher/driver/eventqueue.h"

#include <stdlib.h>
#include <unistd.h>

#include "launcher/base/mem.h"

static void tell_shown(struct dt_eventqueue *q)
{
    size_t count = q->nstreams;

    q->nstreams = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t stream = q->streams[i];
        int fd = stream < q->nprocs ? STDOUT_FILENO : STDERR_FILENO;
        size_t bytes = q->shown[stream];

        q->shown[stream] = 0;
        dt_job_shown(q->job, stream % q->nprocs, fd, bytes);
    }
}

static void tell_failures(struct dt_eventqueue *q)
{
    struct dt_eventqueue_failure *failures = q->failures;
    size_t count = q->nfailures;

    q->failures = NULL;
    q->nfailures = 0;
    for (size_t i = 0; i < count; i++) {
        if (!uv_is_closing((uv_handle_t *)&q->idle)) /* the previous event may have ended the job */
            dt_job_output_failed(q->job, failures[i].what, failures[i].error);
        free(failures[i].what);
    }
    free(failures);
}

static void on_idle(uv_idle_t *idle)
{
    struct dt_eventqueue *q = idle->data;
    bool moved = q->moved;

    uv_idle_stop(idle);
    q->moved = false;
    tell_shown(q);
    tell_failures(q);
    if (moved && !uv_is_closing((uv_handle_t *)idle))
        dt_job_output_moved(q->job);
}

static void wake(struct dt_eventqueue *q)
{
    uv_idle_start(&q->idle, on_idle);
}

void dt_eventqueue_shown(struct dt_eventqueue *q, uint32_t number, int fd, size_t bytes)
{
    uint32_t stream = (fd == STDERR_FILENO ? q->nprocs : 0) + number;

    if (bytes > 0 && q->shown[stream] == 0)
        q->streams[q->nstreams++] = stream;
    q->shown[stream] += bytes;
    wake(q);
}

void dt_eventqueue_output_moved(struct dt_eventqueue *q)
{
    q->moved = true;
    wake(q);
}

void dt_eventqueue_output_failed(struct dt_eventqueue *q, const char *what, int error)
{
    q->failures = dt_xrealloc(q->failures, q->nfailures + 1, sizeof *q->failures);
    q->failures[q->nfailures++] = (struct dt_eventqueue_failure){ dt_xstrdup(what), error };
    wake(q);
}

void dt_eventqueue_open(struct dt_eventqueue *q, uv_loop_t *loop, uint32_t nprocs,
                        struct dt_job *job)
{
    *q = (struct dt_eventqueue){
        .job = job,
        .nprocs = nprocs,
        .shown = dt_xcalloc(2 * (size_t)nprocs, sizeof *q->shown),
        .streams = dt_xcalloc(2 * (size_t)nprocs, sizeof *q->streams),
    };
    uv_idle_init(loop, &q->idle);
    q->idle.data = q;
}

void dt_eventqueue_close(struct dt_eventqueue *q)
{
    uv_close((uv_handle_t *)&q->idle, NULL);
}

void dt_eventqueue_free(struct dt_eventqueue *q)
{
    for (size_t i = 0; i < q->nfailures; i++)
        free(q->failures[i].what);
    free(q->failures);
    free(q->shown);
    free(q->streams);
}
