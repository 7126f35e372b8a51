#include "launcher/driver/driver.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "launcher/base/clock.h"
#include "launcher/base/error.h"
#include "launcher/base/log.h"
#include "launcher/base/mem.h"
#include "launcher/base/process.h"
#include "launcher/base/random.h"
#include "launcher/driver/reportfile.h"
#include "launcher/job/job.h"
#include "launcher/session/loop.h"

struct conn { /* a connection to a host */
    struct driver *driver;
    size_t host;
    struct dt_session *session;
    uint64_t opened_ns;
    bool closing; /* the engine has closed it; it has not ended yet */
};

struct driver {
    const struct dt_driver_config *config;
    struct dt_job_ops ops;
    struct dt_job *job;
    uv_loop_t loop;
    struct conn **conns; /* by host: the newest connection, or NULL */
    struct dt_streams *streams;
    uv_timer_t timers[DT_JOB_TIMERS];
    struct dt_loop_signals signals;
};

/* ---- connections ---- */

static const char *host_name(const struct conn *c)
{
    return c->driver->config->job.hosts->v[c->host].name;
}

static void on_greeted(void *arg, const struct dt_msg_hello *hello)
{
    struct conn *c = arg;

    dt_verbose("%s: connected in %.3f s (%s, agent %s, pid %u, %u cores, %u GPUs)", host_name(c),
               (double)(dt_now_ns() - c->opened_ns) / 1e9, dt_session_carrier(c->session),
               hello->version, hello->pid, hello->cores, hello->gpus.n);
    dt_job_greeted(c->driver->job, c->host, hello);
}

static void on_pushed(void *arg, const char *dir)
{
    struct conn *c = arg;

    dt_job_pushed(c->driver->job, c->host, dir);
}

static void on_host_message(void *arg, uint8_t type, union dt_msg *msg)
{
    struct conn *c = arg;

    dt_job_message(c->driver->job, c->host, type, msg);
}

static void on_host_noise(void *arg, const char *line)
{
    struct conn *c = arg;

    dt_job_noise(c->driver->job, c->host, line);
}

static void on_conn_closed(void *arg, const struct dt_error *why)
{
    struct conn *c = arg;
    struct driver *d = c->driver;
    size_t host = c->host;
    bool closing = c->closing;

    if (d->conns[host] == c)
        d->conns[host] = NULL;
    free(c);
    if (closing)
        dt_job_hung_up(d->job, host);
    else
        dt_job_disconnected(d->job, host, why->text);
}

static void op_open(void *arg, size_t host)
{
    static const struct dt_session_events events = { on_greeted, on_pushed, on_host_message,
                                                     on_host_noise, on_conn_closed };
    struct driver *d = arg;
    const struct dt_hostlist *hosts = d->config->job.hosts;
    struct conn *c = dt_xcalloc(1, sizeof *c);

    *c = (struct conn){ .driver = d, .host = host, .opened_ns = dt_now_ns() };
    d->conns[host] = c;
    c->session = dt_session_open(&d->loop, &d->config->access, &hosts->v[host], hosts->n == 1,
                                 dt_job_id(d->job), &events, c);
}

static const char *op_phase(void *arg, size_t host)
{
    struct driver *d = arg;

    return dt_session_phase(d->conns[host]->session);
}

static void op_send(void *arg, size_t host, uint8_t type, const struct dt_put *frames)
{
    struct driver *d = arg;

    dt_session_send_frames(d->conns[host]->session, type, frames);
}

static void op_close(void *arg, size_t host)
{
    struct driver *d = arg;

    d->conns[host]->closing = true;
    dt_session_close(d->conns[host]->session);
}

/* ---- time and signals ---- */

static uint64_t op_now_ns(void *arg)
{
    (void)arg;
    return dt_now_ns();
}

static void on_timer(uv_timer_t *timer)
{
    struct driver *d = timer->data;

    dt_job_timer(d->job, (enum dt_job_timer)(timer - d->timers));
}

static void op_set_timer(void *arg, enum dt_job_timer timer, uint64_t ms)
{
    struct driver *d = arg;

    uv_timer_start(&d->timers[timer], on_timer, ms, 0);
}

static void op_stop_timer(void *arg, enum dt_job_timer timer)
{
    struct driver *d = arg;

    uv_timer_stop(&d->timers[timer]);
}

static void on_signal(uv_signal_t *handle, int signo)
{
    struct driver *d = handle->data;

    dt_job_signal(d->job, signo);
}

static void watch_signals(struct driver *d)
{
    static const int signos[] = { SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGTSTP };

    dt_loop_watch_signals(&d->signals, &d->loop, signos, sizeof signos / sizeof *signos, on_signal,
                          d);
}

/* Does what SIGTSTP does by default. In an orphaned process group (of "ssh -t host dtrun", or of a
 * container's first process) the kernel does not stop dtrun, because no shell could continue it. */
static void stop_as_by_default(void)
{
    const struct sigaction by_default = { .sa_handler = SIG_DFL };
    struct sigaction ours;

    sigaction(SIGTSTP, &by_default, &ours);
    raise(SIGTSTP);
    sigaction(SIGTSTP, &ours, NULL);
}

static bool has_terminal(void)
{
    int fd = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Without a terminal, not a key but a program such as a batch system has sent SIGTSTP, and means to
 * continue dtrun. */
static void op_suspend(void *arg)
{
    struct driver *d = arg;

    if (has_terminal())
        stop_as_by_default();
    else
        raise(SIGSTOP);
    uv_update_time(&d->loop); /* else timers would start at the time when dtrun was stopped */
}

/* ---- output and input ---- */

static void op_output(void *arg, uint32_t number, int fd, const void *data, size_t n)
{
    struct driver *d = arg;

    dt_streams_add(d->streams, number, fd, data, n);
}

static void op_output_quiet(void *arg, uint32_t number, int fd)
{
    struct driver *d = arg;

    dt_streams_quiet(d->streams, number, fd);
}

static void op_output_eof(void *arg, uint32_t number, int fd)
{
    struct driver *d = arg;

    dt_streams_eof(d->streams, number, fd);
}

static void op_output_end(void *arg)
{
    struct driver *d = arg;

    dt_streams_end_all(d->streams);
}

static const char *op_output_awaits(void *arg, int fd, uint64_t ms)
{
    struct driver *d = arg;

    return dt_streams_awaits(d->streams, fd, ms);
}

static void op_stdin_credit(void *arg, size_t n)
{
    struct driver *d = arg;

    dt_streams_credit_stdin(d->streams, n);
}

static void op_stdin_hold(void *arg)
{
    struct driver *d = arg;

    dt_streams_hold_stdin(d->streams);
}

/* ---- from beginning to end ---- */

static volatile sig_atomic_t late_signal;

static void on_late_signal(int signo)
{
    late_signal = signo;
}

/* Until dtrun has exited, a signal is noted, so that the report is still written. The same
 * signal again ends dtrun at once, because a file system may hang. */
static void note_late_signals(void)
{
    static const int signos[] = { SIGINT, SIGTERM, SIGHUP };
    const struct sigaction note = { .sa_handler = on_late_signal,
                                    .sa_flags = SA_RESETHAND | SA_RESTART };

    for (size_t i = 0; i < sizeof signos / sizeof *signos; i++) {
        if (!dt_process_ignores(signos[i]))
            sigaction(signos[i], &note, NULL);
    }
}

/* Lets uv_run return. */
static void op_end(void *arg)
{
    struct driver *d = arg;

    dt_streams_close(d->streams);
    dt_loop_release_signals(&d->signals);
    note_late_signals();
    for (unsigned i = 0; i < DT_JOB_TIMERS; i++)
        uv_close((uv_handle_t *)&d->timers[i], NULL);
}

static struct dt_job *new_job(struct driver *d)
{
    struct dt_job_origin origin = {
        .terminal = isatty(STDERR_FILENO) == 1,
        .batch = getenv("SLURM_JOB_ID") || getenv("SGE_TASK_ID"),
    };

    d->ops = (struct dt_job_ops){
        .arg = d,
        .open = op_open,
        .phase = op_phase,
        .send = op_send,
        .close = op_close,
        .now_ns = op_now_ns,
        .set_timer = op_set_timer,
        .stop_timer = op_stop_timer,
        .output = op_output,
        .output_quiet = op_output_quiet,
        .output_eof = op_output_eof,
        .output_end = op_output_end,
        .output_awaits = op_output_awaits,
        .stdin_credit = op_stdin_credit,
        .stdin_hold = op_stdin_hold,
        .suspend = op_suspend,
        .end = op_end,
    };
    dt_random_fill(&origin.tag, sizeof origin.tag);
    dt_random_fill(origin.secret, sizeof origin.secret);
    return dt_job_new(&d->config->job, &origin, &d->ops);
}

static void begin(struct driver *d)
{
    dt_loop_open(&d->loop);
    watch_signals(d); /* first, before there is anything that a signal would leave behind */
    for (unsigned i = 0; i < DT_JOB_TIMERS; i++) {
        uv_timer_init(&d->loop, &d->timers[i]);
        d->timers[i].data = d;
    }
    d->conns = dt_xcalloc(d->config->job.hosts->n, sizeof(struct conn *));
    d->job = new_job(d);
    d->streams = dt_streams_open(&d->loop, &d->config->streams, d->config->job.plan, d->job);
    dt_job_begin(d->job);
}

static int write_report(const struct driver *d, int exit_code)
{
    char *text = dt_job_report(d->job);
    struct dt_error err = { 0 };

    if (dt_report_write(d->config->report, text, &err) < 0) {
        dt_say("%s", err.text);
        exit_code = exit_code ? exit_code : DT_EXIT_LAUNCH;
    }
    free(text);
    return exit_code;
}

int dt_driver_run(const struct dt_driver_config *config)
{
    static struct driver d; /* 5 KB: too much for a small stack */
    int exit_code;

    d = (struct driver){ .config = config };
    begin(&d);
    uv_run(&d.loop, UV_RUN_DEFAULT);
    dt_streams_free(d.streams);
    exit_code = dt_job_exit_code(d.job);
    if (config->report)
        exit_code = write_report(&d, exit_code);
    dt_loop_close_signals(&d.signals);
    uv_run(&d.loop, UV_RUN_DEFAULT);
    uv_loop_close(&d.loop);
    if (dt_job_ended_by(d.job))
        dt_process_ended_by(dt_job_ended_by(d.job));
    if (exit_code == 0 && late_signal) {
        exit_code = DT_EXIT_SIGNAL + late_signal;
        dt_process_ended_by(late_signal);
    }
    dt_job_free(d.job);
    free(d.conns);
    return exit_code;
}
