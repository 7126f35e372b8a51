#include "launcher/driver/news.h"

#include <stdlib.h>
#include <unistd.h>

#include "launcher/base/mem.h"

static void tell_shown(struct dt_news *n)
{
    size_t count = n->nstreams;

    n->nstreams = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t stream = n->streams[i];
        int fd = stream < n->nprocs ? STDOUT_FILENO : STDERR_FILENO;
        size_t bytes = n->shown[stream];

        n->shown[stream] = 0;
        dt_job_shown(n->job, stream % n->nprocs, fd, bytes);
    }
}

static void tell_failures(struct dt_news *n)
{
    struct dt_news_failure *failures = n->failures;
    size_t count = n->nfailures;

    n->failures = NULL;
    n->nfailures = 0;
    for (size_t i = 0; i < count; i++) {
        if (!uv_is_closing((uv_handle_t *)&n->idle)) /* the previous event may have ended the job */
            dt_job_output_failed(n->job, failures[i].what, failures[i].error);
        free(failures[i].what);
    }
    free(failures);
}

static void on_idle(uv_idle_t *idle)
{
    struct dt_news *n = idle->data;
    bool moved = n->moved;

    uv_idle_stop(idle);
    n->moved = false;
    tell_shown(n);
    tell_failures(n);
    if (moved && !uv_is_closing((uv_handle_t *)idle))
        dt_job_output_moved(n->job);
}

static void wake(struct dt_news *n)
{
    uv_idle_start(&n->idle, on_idle);
}

void dt_news_shown(struct dt_news *n, uint32_t number, int fd, size_t bytes)
{
    uint32_t stream = (fd == STDERR_FILENO ? n->nprocs : 0) + number;

    if (bytes > 0 && n->shown[stream] == 0)
        n->streams[n->nstreams++] = stream;
    n->shown[stream] += bytes;
    wake(n);
}

void dt_news_output_moved(struct dt_news *n)
{
    n->moved = true;
    wake(n);
}

void dt_news_output_failed(struct dt_news *n, const char *what, int error)
{
    n->failures = dt_xrealloc(n->failures, n->nfailures + 1, sizeof *n->failures);
    n->failures[n->nfailures++] = (struct dt_news_failure){ dt_xstrdup(what), error };
    wake(n);
}

void dt_news_open(struct dt_news *n, uv_loop_t *loop, uint32_t nprocs, struct dt_job *job)
{
    *n = (struct dt_news){
        .job = job,
        .nprocs = nprocs,
        .shown = dt_xcalloc(2 * (size_t)nprocs, sizeof *n->shown),
        .streams = dt_xcalloc(2 * (size_t)nprocs, sizeof *n->streams),
    };
    uv_idle_init(loop, &n->idle);
    n->idle.data = n;
}

void dt_news_close(struct dt_news *n)
{
    uv_close((uv_handle_t *)&n->idle, NULL);
}

void dt_news_free(struct dt_news *n)
{
    for (size_t i = 0; i < n->nfailures; i++)
        free(n->failures[i].what);
    free(n->failures);
    free(n->shown);
    free(n->streams);
}
