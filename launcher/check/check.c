#include "launcher/check/check.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "launcher/base/clock.h"
#include "launcher/base/log.h"
#include "launcher/base/mem.h"
#include "launcher/base/printed.h"
#include "launcher/base/process.h"
#include "launcher/base/random.h"
#include "launcher/check/cells.h"
#include "launcher/check/json.h"
#include "launcher/check/paths.h"
#include "launcher/check/peer.h"
#include "launcher/check/remarks.h"
#include "launcher/hosts/duplicate_hosts.h"
#include "launcher/io/json.h"
#include "launcher/session/loop.h"
#include "launcher/watch/signal_meaning.h"

enum { END_PATIENCE_MS = 2000 };

struct check {
    const struct dt_job_config *job;
    struct dt_check_plan plan;
    uv_loop_t loop;
    struct dt_check_peer *peers; /* one for each host of the job */
    struct dt_check_host *hosts;
    size_t n;
    struct dt_check_paths paths; /* begun when every host has nothing left to do */
    uv_timer_t tick;
    uint64_t last_look_ns;
    uv_timer_t start;    /* --start-timeout */
    uv_timer_t timeout;  /* --timeout */
    uv_timer_t patience; /* for agents that were sent END */
    struct dt_loop_signals signals;
    size_t unusable; /* hosts, when the measurement of paths began */
    bool ending;
    bool closed;   /* the timers and signals are closed, too */
    int exit_code; /* after a signal or the time limit, else 0 */
};

static const char *identity_of(const void *arg, size_t i)
{
    const struct check *c = arg;

    return c->peers[i].identity;
}

/* If two names mean one machine, its slots would count twice. */
static void find_duplicate_hosts(struct check *c)
{
    size_t *first = dt_duplicate_hosts_find(c->n, identity_of, c);

    for (size_t i = 0; i < c->n; i++)
        if (first[i] != i && !c->hosts[i].problem)
            c->hosts[i].problem =
                dt_xasprintf("it is the same machine as %s: name it once, with all its slots",
                             c->hosts[first[i]].name);
    free(first);
}

static void close_peers(struct check *c)
{
    for (size_t i = 0; i < c->n; i++)
        dt_check_peer_close(&c->peers[i], NULL);
}

static void on_patience_over(uv_timer_t *timer)
{
    close_peers(timer->data);
}

static void end_check(struct check *c)
{
    c->ending = true;
    for (size_t i = 0; i < c->n; i++)
        dt_check_peer_end(&c->peers[i]);
    uv_timer_start(&c->patience, on_patience_over, END_PATIENCE_MS, 0);
}

/* Closes what is left, so that the loop ends. */
static void close_handles(struct check *c)
{
    c->closed = true;
    uv_close((uv_handle_t *)&c->tick, NULL);
    uv_close((uv_handle_t *)&c->start, NULL);
    uv_close((uv_handle_t *)&c->timeout, NULL);
    uv_close((uv_handle_t *)&c->patience, NULL);
    dt_loop_close_signals(&c->signals);
}

static void begin_paths(struct check *c)
{
    struct dt_check_peer **usable = dt_xcalloc(c->n, sizeof *usable);
    uint32_t n = 0;

    for (size_t i = 0; i < c->n; i++)
        if (dt_check_peer_is_open(&c->peers[i]))
            usable[n++] = &c->peers[i];
    dt_check_paths_begin(&c->paths, c->job, usable, n);
    c->unusable = c->n - n;
    free(usable);
}

/* Connects to waiting hosts, in order, as far as --fanout allows. */
static void connect_next(struct check *c)
{
    int connecting = 0;

    for (size_t i = 0; i < c->n; i++)
        connecting += dt_check_peer_is_connecting(&c->peers[i]);
    for (size_t i = 0; i < c->n && connecting < c->job->fanout; i++) {
        if (c->peers[i].tried)
            continue;
        dt_check_peer_connect(&c->peers[i]);
        connecting++;
    }
}

static void on_progress(void *arg)
{
    struct check *c = arg;
    size_t settled = 0, open = 0, closed = 0;

    if (!c->ending)
        connect_next(c);
    for (size_t i = 0; i < c->n; i++) {
        settled += dt_check_peer_awaits(&c->peers[i]) == NULL;
        open += dt_check_peer_is_open(&c->peers[i]);
        closed += !c->peers[i].session;
    }
    if (settled == c->n && !c->paths.begun && !c->ending)
        begin_paths(c);
    /* A host that has been lost since then will not answer. */
    if (c->paths.begun && (c->paths.over || open < c->n - c->unusable) && !c->ending)
        end_check(c);
    if (closed == c->n && !c->closed)
        close_handles(c);
}

static void on_reached(void *arg, struct dt_check_peer *peer, struct dt_msg_reach *m)
{
    struct check *c = arg;

    dt_check_paths_answer(&c->paths, peer, m);
}

static void on_check_tick(uv_timer_t *timer)
{
    struct check *c = timer->data;
    uint64_t now = dt_now_ns();

    for (size_t i = 0; i < c->n; i++)
        dt_check_peer_tick(&c->peers[i], now, c->last_look_ns);
    c->last_look_ns = now;
    on_progress(c);
}

/* Ends the check of each host that is not done. Facts that it has not sent stay unknown. */
static void give_up_hosts(struct check *c, int limit_s, const char *option)
{
    for (size_t i = 0; i < c->n; i++) {
        const char *what = dt_check_peer_awaits(&c->peers[i]);
        char *problem;

        if (!what)
            continue;
        problem = dt_xasprintf("%s: not done within the %d s of %s", what, limit_s, option);
        dt_check_peer_close(&c->peers[i], problem);
        free(problem);
    }
}

static void on_start_timeout(uv_timer_t *timer)
{
    struct check *c = timer->data;

    give_up_hosts(c, c->job->start_timeout_s, "--start-timeout");
    on_progress(c);
}

static void stop_check(struct check *c, int exit_code)
{
    c->exit_code = exit_code;
    if (!c->ending)
        end_check(c);
}

static void on_timeout(uv_timer_t *timer)
{
    struct check *c = timer->data;

    if (c->ending)
        return;
    give_up_hosts(c, c->job->timeout_s, "--timeout");
    stop_check(c, DT_EXIT_TIMEOUT);
}

/* A second signal ends the check without waiting for the agents. */
static void on_signal(uv_signal_t *handle, int signo)
{
    struct check *c = handle->data;

    if (c->ending && c->exit_code) {
        close_peers(c);
        return;
    }
    dt_say("%s by %s", signo == SIGINT ? "interrupted" : "told to end", dt_signal_name(signo));
    dt_process_ended_by(signo);
    stop_check(c, DT_EXIT_SIGNAL + signo);
}

static void watch_signals(struct check *c)
{
    static const int signos[] = { SIGINT, SIGTERM, SIGHUP };

    dt_loop_watch_signals(&c->signals, &c->loop, signos, sizeof signos / sizeof *signos, on_signal,
                          c);
}

static void begin_check(struct check *c, const struct dt_job_config *job,
                        const struct dt_access *access)
{
    uint64_t period = (uint64_t)job->heartbeat_s * 1000 / 4;
    uint32_t tag = 0;

    dt_random_fill(&tag, sizeof tag);
    dt_loop_open(&c->loop);
    c->job = job;
    c->n = job->hosts->n;
    c->peers = dt_xcalloc(c->n, sizeof *c->peers);
    c->hosts = dt_xcalloc(c->n, sizeof *c->hosts);
    c->plan = (struct dt_check_plan){ &c->loop, job, access, "", on_reached, on_progress, c };
    snprintf(c->plan.id, sizeof c->plan.id, "check-%08" PRIx32, tag);
    uv_timer_init(&c->loop, &c->tick);
    uv_timer_init(&c->loop, &c->start);
    uv_timer_init(&c->loop, &c->timeout);
    uv_timer_init(&c->loop, &c->patience);
    c->tick.data = c->start.data = c->timeout.data = c->patience.data = c;
    c->last_look_ns = dt_now_ns();
    uv_timer_start(&c->tick, on_check_tick, period, period);
    if (job->start_timeout_s > 0)
        uv_timer_start(&c->start, on_start_timeout, (uint64_t)job->start_timeout_s * 1000, 0);
    if (job->timeout_s > 0)
        uv_timer_start(&c->timeout, on_timeout, (uint64_t)job->timeout_s * 1000, 0);
    watch_signals(c);
    for (size_t i = 0; i < c->n; i++) {
        c->hosts[i].name = job->hosts->v[i].name;
        dt_check_peer_init(&c->peers[i], &c->plan, i, &c->hosts[i]);
    }
    connect_next(c);
}

/* ---- the result ---- */

/* Reports the problem of this host, with the names of all hosts that have the same. Does nothing if
 * an earlier host has it, too. */
static void say_problem(const struct check *c, size_t host)
{
    const char *problem = c->hosts[host].problem;
    struct dt_strbuf names = { 0 };

    for (size_t i = 0; i < c->n; i++) {
        if (!c->hosts[i].problem || strcmp(c->hosts[i].problem, problem) != 0)
            continue;
        if (i < host)
            return;
        dt_strbuf_printf(&names, "%s%s", i > host ? ", " : "", c->hosts[i].name);
    }
    dt_say("%s: %s", dt_strbuf_text(&names), problem);
    dt_strbuf_free(&names);
}

static void say_problems(const struct check *c, size_t bad)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->hosts[i].problem)
            say_problem(c, i);
    if (bad && c->n > 1)
        dt_say("%zu of %zu hosts cannot be used; a job would not start", bad, c->n);
}

static void say_remarks(const struct check *c, const struct dt_remarks *remarks)
{
    for (size_t i = 0; i < c->n; i++) {
        struct dt_strbuf b = { 0 };

        for (size_t k = 0; k < remarks->n; k++)
            if (remarks->v[k].host == i)
                dt_strbuf_printf(&b, "%s%s", b.len ? "; " : "", remarks->v[k].text);
        if (b.len)
            dt_say("%s: %s", c->hosts[i].name, dt_strbuf_text(&b));
        dt_strbuf_free(&b);
    }
}

/* 0 for a file or pipe, where lines may have any length. */
static size_t terminal_width(void)
{
    struct winsize size;

    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static void print_table(const struct check *c, const struct dt_remarks *remarks)
{
    struct dt_strbuf table = { 0 };

    dt_check_print(&table, c->hosts, c->n, remarks, terminal_width());
    fputs(dt_strbuf_text(&table), stdout);
    dt_strbuf_free(&table);
}

static void print_json(const struct check *c, const struct dt_remarks *remarks)
{
    char *text = dt_json_text(dt_check_json(c->hosts, c->n, remarks, c->job->plan->np));

    puts(text);
    free(text);
}

static int report(const struct check *c, bool json, struct dt_error *err)
{
    struct dt_remarks remarks = { 0 };
    size_t bad = 0;
    int rc = c->exit_code;

    for (size_t i = 0; i < c->n; i++)
        bad += c->hosts[i].problem != NULL;
    dt_remarks_make(&remarks, c->hosts, c->n);
    if (json)
        print_json(c, &remarks);
    else
        print_table(c, &remarks);
    if (dt_printed(err) < 0)
        rc = -1;
    say_problems(c, bad);
    say_remarks(c, &remarks);
    dt_remarks_free(&remarks);
    return rc ? rc : bad ? DT_EXIT_LAUNCH : 0;
}

int dt_check_run(const struct dt_job_config *config, const struct dt_access *access, bool json,
                 struct dt_error *err)
{
    struct check c = { 0 };
    int rc;

    begin_check(&c, config, access);
    uv_run(&c.loop, UV_RUN_DEFAULT);
    uv_loop_close(&c.loop);
    find_duplicate_hosts(&c);
    rc = c.exit_code > DT_EXIT_SIGNAL ? c.exit_code : report(&c, json, err);
    for (size_t i = 0; i < c.n; i++) {
        dt_check_peer_free(&c.peers[i]);
        dt_check_host_free(&c.hosts[i]);
    }
    dt_check_paths_free(&c.paths);
    free(c.peers);
    free(c.hosts);
    return rc;
}
