#include "launcher/driver/streams.h"

#include <stdlib.h>
#include <unistd.h>

#include "launcher/base/log.h"
#include "launcher/base/mem.h"
#include "launcher/driver/eventqueue.h"
#include "launcher/io/outmux.h"
#include "launcher/io/stdinpump.h"
#include "launcher/job/job.h"

struct tee { /* bytes that have reached only one of file and terminal so far */
    size_t written;
    size_t shown;
};

struct dt_streams {
    const struct dt_streams_config *config;
    uint32_t nprocs;
    struct dt_job *job;
    struct dt_eventqueue events;
    struct dt_outmux *out;
    /* With output files: one for each process's standard output, then one for each standard error;
     * otherwise NULL. */
    struct tee *tees;
    struct dt_stdinpump *in;
};

/* With --tee a stream gets credit only for bytes that are both written to its file and shown. */
static void note_tee(struct dt_streams *s, uint32_t number, int fd, size_t written, size_t shown)
{
    struct tee *t = &s->tees[(size_t)(fd == STDERR_FILENO) * s->nprocs + number];
    size_t both;

    t->written += written;
    t->shown += shown;
    both = t->written < t->shown ? t->written : t->shown;
    t->written -= both;
    t->shown -= both;
    if (both > 0)
        dt_eventqueue_shown(&s->events, number, fd, both);
}

static void on_file_wrote(void *arg, uint32_t number, int fd, size_t n)
{
    struct dt_streams *s = arg;

    if (s->config->tee)
        note_tee(s, number, fd, n, 0);
    else
        dt_eventqueue_shown(&s->events, number, fd, n);
}

static void on_shown(void *arg, uint32_t number, int fd, uint32_t n)
{
    struct dt_streams *s = arg;

    if (s->config->files)
        note_tee(s, number, fd, 0, n);
    else
        dt_eventqueue_shown(&s->events, number, fd, n);
}

static void on_file_failed(void *arg, const char *name, int error)
{
    struct dt_streams *s = arg;

    dt_eventqueue_output_failed(&s->events, name, error);
}

/* Without standard error nothing can be reported, but the job continues. */
static void on_output_failed(void *arg, int fd, int error)
{
    struct dt_streams *s = arg;

    if (fd == STDERR_FILENO)
        dt_eventqueue_output_moved(&s->events);
    else
        dt_eventqueue_output_failed(&s->events, "standard output", error);
}

static void on_output_drained(void *arg)
{
    struct dt_streams *s = arg;

    dt_eventqueue_output_moved(&s->events);
}

static void on_stdin(void *arg, const void *data, size_t n)
{
    struct dt_streams *s = arg;

    dt_job_stdin(s->job, data, n);
}

static void on_stdin_eof(void *arg)
{
    struct dt_streams *s = arg;

    dt_job_stdin_eof(s->job);
}

static void on_stdin_failed(void *arg, int error)
{
    struct dt_streams *s = arg;

    dt_job_stdin_failed(s->job, error);
}

static void log_sink(void *arg, const char *line, size_t n, bool foreign)
{
    struct dt_streams *s = arg;

    dt_outmux_message(s->out, line, n, foreign);
}

struct dt_streams *dt_streams_open(uv_loop_t *loop, const struct dt_streams_config *config,
                                   const struct dt_plan *plan, struct dt_job *job)
{
    const struct dt_outmux_config mux = {
        .np = (uint32_t)plan->np,
        .nprocs = (uint32_t)plan->nprocs,
        .labels = config->labels,
        .stamps = config->stamps,
    };
    const struct dt_outmux_events out = { on_shown, on_output_failed, on_output_drained };
    const struct dt_outfiles_events files = { on_file_wrote, on_file_failed, on_output_drained };
    const struct dt_stdinpump_events in = { on_stdin, on_stdin_eof, on_stdin_failed };
    struct dt_streams *s = dt_xcalloc(1, sizeof *s);

    s->config = config;
    s->nprocs = mux.nprocs;
    s->job = job;
    dt_eventqueue_open(&s->events, loop, s->nprocs, job);
    s->out = dt_outmux_open(loop, &mux, &out, s);
    if (config->files) {
        s->tees = dt_xcalloc(2 * (size_t)s->nprocs, sizeof *s->tees);
        dt_outfiles_start(config->files, loop, &files, s);
    }
    s->in = dt_stdinpump_open(loop, STDIN_FILENO, &in, s);
    dt_log_set_sink(log_sink, s);
    return s;
}

void dt_streams_add(struct dt_streams *s, uint32_t number, int fd, const void *data, size_t n)
{
    if (s->config->files)
        dt_outfiles_write(s->config->files, number, fd, data, n);
    if (!s->config->files || s->config->tee)
        dt_outmux_add(s->out, number, fd, data, n);
}

void dt_streams_quiet(struct dt_streams *s, uint32_t number, int fd)
{
    dt_outmux_quiet(s->out, number, fd);
}

void dt_streams_eof(struct dt_streams *s, uint32_t number, int fd)
{
    dt_outmux_eof(s->out, number, fd);
}

void dt_streams_end_all(struct dt_streams *s)
{
    dt_outmux_end_all(s->out);
}

const char *dt_streams_awaits(const struct dt_streams *s, int fd, uint64_t ms)
{
    if (s->events.nfailures > 0)
        return "written";
    if (dt_outmux_awaits(s->out, fd, ms))
        return "read";
    return dt_outfiles_await(s->config->files, ms) ? "written to --output-dir" : NULL;
}

void dt_streams_credit_stdin(struct dt_streams *s, size_t n)
{
    dt_stdinpump_credit(s->in, n);
}

void dt_streams_hold_stdin(struct dt_streams *s)
{
    dt_stdinpump_hold(s->in);
}

void dt_streams_close(struct dt_streams *s)
{
    dt_log_set_sink(NULL, NULL);
    dt_outmux_close(s->out);
    dt_outfiles_stop(s->config->files);
    dt_stdinpump_close(s->in);
    dt_eventqueue_close(&s->events);
}

void dt_streams_free(struct dt_streams *s)
{
    dt_eventqueue_free(&s->events);
    free(s->tees);
    free(s);
}
