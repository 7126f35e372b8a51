/* The engine of a job by itself: it is linked without libuv and libssh2, and the test is its
 * world. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/base/log.h"
#include "launcher/base/mem.h"
#include "launcher/job/job.h"
#include "launcher/place/frameworks.h"
#include "runtime/wire/frame.h"
#include "tests/unit/unit.h"

enum { HOSTS = 2, LOG_MAX = 64 };

struct world {
    struct dt_hostlist hosts;
    struct dt_plan plan;
    struct dt_job_config config;
    struct dt_job_ops ops;
    struct dt_job *job;
    uint64_t now_ns;
    uint64_t due_ns[DT_JOB_TIMERS]; /* 0: the timer is not running */
    bool open[HOSTS];
    uint8_t sent[HOSTS][LOG_MAX]; /* types of messages, in order, without PING */
    size_t nsent[HOSTS];
    uint32_t generation[HOSTS]; /* of the last START */
    uint32_t signals[HOSTS][4]; /* of SIGNAL, in order */
    size_t nsignals[HOSTS];
    bool in_step; /* every agent is in a step */
    uint16_t free_port[HOSTS];
    bool ended;
    size_t credited;    /* bytes of standard input */
    size_t shown;       /* bytes of output */
    const char *awaits; /* as ops.output_awaits */
    uint64_t unread_ms; /* for how long nobody has read any */
    uint64_t away_ns;   /* for how long dtrun is suspended */
    char said[4096];    /* dtrun's messages */
};

static void on_open(void *arg, size_t host)
{
    struct world *w = arg;

    assert_false(w->open[host]);
    w->open[host] = true;
}

static const char *phase(void *arg, size_t host)
{
    (void)arg;
    (void)host;
    return "authenticate";
}

struct receiver {
    struct world *world;
    size_t host;
};

static int receive(void *arg, uint8_t type, const uint8_t *payload, size_t len)
{
    struct receiver *r = arg;
    struct world *w = r->world;
    union dt_msg msg;

    assert_int_equal(dt_msg_decode(type, payload, len, &msg), 0);
    if (type != DT_MSG_PING)
        w->sent[r->host][w->nsent[r->host]++] = type;
    if (type == DT_MSG_START)
        w->generation[r->host] = msg.start.generation;
    if (type == DT_MSG_SIGNAL)
        w->signals[r->host][w->nsignals[r->host]++] = msg.signal.signo;
    dt_msg_free(type, &msg);
    return 0;
}

static void on_send(void *arg, size_t host, uint8_t type, const struct dt_put *frames)
{
    struct receiver r = { arg, host };
    struct dt_unframe unframe = { 0 };
    const char *why = NULL;

    (void)type;
    assert_true(r.world->open[host]);
    assert_int_equal(dt_unframe_feed(&unframe, frames->data, frames->len, receive, &r, &why), 0);
    dt_unframe_free(&unframe);
}

static void on_close(void *arg, size_t host)
{
    struct world *w = arg;

    assert_true(w->open[host]);
    w->open[host] = false;
}

static uint64_t now_ns(void *arg)
{
    struct world *w = arg;

    return w->now_ns;
}

static void set_timer(void *arg, enum dt_job_timer timer, uint64_t ms)
{
    struct world *w = arg;

    w->due_ns[timer] = w->now_ns + ms * 1000000;
}

static void stop_timer(void *arg, enum dt_job_timer timer)
{
    struct world *w = arg;

    w->due_ns[timer] = 0;
}

static void output(void *arg, uint32_t number, int fd, const void *data, size_t n)
{
    struct world *w = arg;

    (void)number;
    (void)fd;
    (void)data;
    w->shown += n;
}

static void output_edge(void *arg, uint32_t number, int fd)
{
    (void)arg;
    (void)number;
    (void)fd;
}

static void nothing(void *arg)
{
    (void)arg;
}

static void suspend(void *arg)
{
    struct world *w = arg;

    w->now_ns += w->away_ns;
}

static const char *output_awaits(void *arg, int fd, uint64_t ms)
{
    struct world *w = arg;

    return fd == STDOUT_FILENO && w->unread_ms >= ms ? w->awaits : NULL;
}

static void stdin_credit(void *arg, size_t n)
{
    struct world *w = arg;

    w->credited += n;
}

static void on_end(void *arg)
{
    struct world *w = arg;

    w->ended = true;
}

static void say(void *arg, const char *line, size_t n, bool foreign)
{
    struct world *w = arg;
    size_t said = strlen(w->said);

    (void)foreign;
    assert_true(said + n < sizeof w->said);
    memcpy(w->said + said, line, n);
}

static void prepare(struct world *w)
{
    const struct dt_placement by_slot = { 0 };
    struct dt_error err = { 0 };

    *w = (struct world){ .now_ns = 1000000000 };
    w->hosts.v = dt_xcalloc(HOSTS, sizeof *w->hosts.v);
    w->hosts.n = HOSTS;
    w->hosts.v[0] = (struct dt_host){ .name = (char *)"a", .slots = 1 };
    w->hosts.v[1] = (struct dt_host){ .name = (char *)"b", .slots = 1 };
    assert_int_equal(dt_plan_make(&w->plan, &w->hosts, HOSTS, &by_slot, &err), 0);
    w->config = (struct dt_job_config){
        .hosts = &w->hosts,
        .plan = &w->plan,
        .fanout = 32,
        .start_timeout_s = 60,
        .wdir = "/tmp",
        .max_restarts = 1,
        .heartbeat_s = 4,
        .kill_grace_s = 5,
        .stdin_rank = DT_STDIN_NONE,
    };
    dt_xstrs_add(&w->config.argv, "./train");
    for (size_t host = 0; host < HOSTS; host++)
        w->free_port[host] = 40000;
    w->ops = (struct dt_job_ops){
        .arg = w,
        .open = on_open,
        .phase = phase,
        .send = on_send,
        .close = on_close,
        .now_ns = now_ns,
        .set_timer = set_timer,
        .stop_timer = stop_timer,
        .output = output,
        .output_quiet = output_edge,
        .output_eof = output_edge,
        .output_end = nothing,
        .output_awaits = output_awaits,
        .stdin_credit = stdin_credit,
        .stdin_hold = nothing,
        .suspend = suspend,
        .end = on_end,
    };
}

static void launch(struct world *w)
{
    const struct dt_job_origin origin = { .tag = 0xabcd, .batch = w->in_step };

    dt_log_set_sink(say, w);
    w->job = dt_job_new(&w->config, &origin, &w->ops);
    dt_job_begin(w->job);
}

static void begin_injecting(struct world *w, const char *fault)
{
    prepare(w);
    dt_xstrs_add(&w->config.inject, fault);
    launch(w);
}

static void begin(struct world *w)
{
    prepare(w);
    launch(w);
}

static void end(struct world *w)
{
    dt_job_free(w->job);
    dt_log_set_sink(NULL, NULL);
    dt_plan_free(&w->plan);
    dt_strs_free(&w->config.argv);
    dt_strs_free(&w->config.inject);
    free(w->hosts.v);
}

static void greet(struct world *w, size_t host)
{
    static struct dt_msg_netaddr addrs[HOSTS] = {
        { .iface = (char *)"eth0", .addr = (char *)"10.0.0.1" },
        { .iface = (char *)"eth0", .addr = (char *)"10.0.0.2" }
    };
    static const char *const machines[HOSTS] = { "machine a", "machine b" };
    const struct dt_msg_hello hello = {
        .version = (char *)"0",
        .identity = (char *)(uintptr_t)machines[host],
        .addr = (char *)"",
        .peer_addr = (char *)"",
        .free_port = w->free_port[host],
        .probe_port = 41000,
        .time_ns = w->now_ns,
        .in_step = w->in_step,
        .addrs = { &addrs[host], 1 },
    };

    dt_job_greeted(w->job, host, &hello);
    dt_job_pushed(w->job, host, "");
}

static void answer_probe_with(struct world *w, size_t host, uint8_t state)
{
    struct dt_msg_reached *results = dt_xcalloc(1, sizeof *results);
    union dt_msg msg = { .reach = { .generation = w->generation[host],
                                    .results = { results, 1 } } };

    results->node = (uint32_t)(1 - host);
    results->state = state;
    dt_job_message(w->job, host, DT_MSG_REACH, &msg);
    dt_msg_free(DT_MSG_REACH, &msg);
}

static void answer_probe(struct world *w, size_t host)
{
    answer_probe_with(w, host, DT_REACH_OK);
}

static void say_ready(struct world *w, size_t host)
{
    union dt_msg ready = { .ready = { .generation = w->generation[host] } };

    dt_job_message(w->job, host, DT_MSG_READY, &ready);
}

static void get_ready(struct world *w)
{
    for (size_t host = 0; host < HOSTS; host++) {
        answer_probe(w, host);
        say_ready(w, host);
    }
}

static void report_started(struct world *w, size_t host)
{
    struct dt_msg_started_rank rank = { .rank = (uint32_t)host,
                                        .pid = 100 + (uint32_t)host,
                                        .device = (char *)"" };
    union dt_msg m = { .started = { .generation = w->generation[host], .ranks = { &rank, 1 } } };

    dt_job_message(w->job, host, DT_MSG_STARTED, &m);
}

static void start_ranks(struct world *w)
{
    get_ready(w);
    for (size_t host = 0; host < HOSTS; host++)
        report_started(w, host);
}

static void end_rank(struct world *w, size_t host, int code, int signo)
{
    union dt_msg m = { .exit = { .generation = w->generation[host],
                                 .rank = (uint32_t)host,
                                 .pid = 100 + (uint32_t)host,
                                 .code = code,
                                 .signo = signo,
                                 .time_ns = w->now_ns,
                                 .step = -1 } };

    dt_job_message(w->job, host, DT_MSG_EXIT, &m);
}

static void sweep(struct world *w, size_t host)
{
    union dt_msg done = { .done = { .generation = w->generation[host] } };

    dt_job_message(w->job, host, DT_MSG_DONE, &done);
}

static void answer_query(struct world *w, size_t host, uint32_t id)
{
    union dt_msg m = { .answer = { .id = id } };

    dt_job_message(w->job, host, DT_MSG_ANSWER, &m);
}

static void disconnect(struct world *w, size_t host)
{
    w->open[host] = false;
    dt_job_disconnected(w->job, host, "");
}

static void assert_last_sent(const struct world *w, size_t host, uint8_t type)
{
    assert_string_equal(dt_msg_name(w->sent[host][w->nsent[host] - 1]), dt_msg_name(type));
}

/* Both hosts connect, and the first generation starts. */
static void meet_and_start(struct world *w)
{
    for (size_t host = 0; host < HOSTS; host++)
        greet(w, host);
    start_ranks(w);
}

static void ranks_that_exit_with_0_end_the_job(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    greet(&w, 0);
    assert_int_equal(w.nsent[0], 0); /* no rank starts before all hosts can be used */
    greet(&w, 1);
    start_ranks(&w);
    for (size_t host = 0; host < HOSTS; host++) {
        assert_last_sent(&w, host, DT_MSG_GO);
        end_rank(&w, host, 0, 0);
        sweep(&w, host);
    }
    for (size_t host = 0; host < HOSTS; host++) {
        assert_last_sent(&w, host, DT_MSG_END);
        assert_false(w.ended);
        disconnect(&w, host);
    }
    assert_true(w.ended);
    assert_int_equal(dt_job_exit_code(w.job), 0);
    end(&w);
}

/* Each rank needs the port of DT_PORT_TENSORFLOW and its local rank. */
static void tensorflow_is_refused_where_ranks_have_no_port(void **state)
{
    struct world w;

    (void)state;
    prepare(&w);
    w.config.frameworks = DT_FRAMEWORK_TENSORFLOW;
    w.free_port[0] = 65532;
    w.free_port[1] = 65533;
    launch(&w);
    for (size_t host = 0; host < HOSTS; host++)
        greet(&w, host);
    get_ready(&w);
    for (size_t host = 0; host < HOSTS; host++) {
        assert_last_sent(&w, host, DT_MSG_STOP);
        sweep(&w, host);
        disconnect(&w, host);
    }
    assert_non_null(strstr(w.said, "--env tensorflow gives each of the 1 ranks of b a port from "
                                   "65536 on, but 65535 is the last port; nothing was started"));
    assert_true(w.ended);
    assert_int_equal(dt_job_exit_code(w.job), DT_EXIT_LAUNCH);
    end(&w);
}

static void a_killed_rank_restarts_the_job_once_all_are_gone(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    meet_and_start(&w);
    end_rank(&w, 1, -1, 9);
    answer_query(&w, 0, 1);
    answer_query(&w, 1, 1);
    assert_int_not_equal(w.due_ns[DT_TIMER_COLLECT], 0); /* for the rank's last output */
    dt_job_timer(w.job, DT_TIMER_COLLECT);
    assert_last_sent(&w, 0, DT_MSG_STOP);
    sweep(&w, 1);
    assert_int_equal(w.generation[1], 1);
    end_rank(&w, 0, -1, 9);
    sweep(&w, 0);
    assert_int_equal(w.generation[0], 2);
    assert_int_equal(w.generation[1], 2);
    start_ranks(&w);
    end_rank(&w, 0, 3, 0);
    end_rank(&w, 1, 0, 0);
    sweep(&w, 0);
    sweep(&w, 1);
    disconnect(&w, 0);
    disconnect(&w, 1);
    assert_true(w.ended);
    assert_int_equal(dt_job_exit_code(w.job), 3);
    end(&w);
}

/* All hosts have answered, and nine restarts are allowed. */
static void launch_to_restart(struct world *w)
{
    prepare(w);
    w->config.max_restarts = 9;
    launch(w);
    greet(w, 0);
    greet(w, 1);
}

static void fail_on_b(struct world *w, uint32_t failure)
{
    end_rank(w, 1, 1, 0);
    answer_query(w, 0, failure);
    answer_query(w, 1, failure);
    dt_job_timer(w->job, DT_TIMER_COLLECT);
    end_rank(w, 0, -1, SIGKILL);
    sweep(w, 0);
    sweep(w, 1);
}

/* The program does not save with libdtrun, so only the time shows that it has progressed. */
static void a_restart_waits_unless_the_ranks_ran_for_a_minute(void **state)
{
    static const uint64_t run_s[] = { 1, 61, 1 };
    struct world w;

    (void)state;
    launch_to_restart(&w);
    for (uint32_t failure = 1; failure <= 3; failure++) {
        start_ranks(&w);
        w.now_ns += run_s[failure - 1] * UINT64_C(1000000000);
        fail_on_b(&w, failure);
        assert_int_equal(w.generation[1], failure < 3 ? failure + 1 : failure);
    }
    assert_non_null(strstr(w.said, "in 1 s (restart 2 without progress)"));
    assert_int_not_equal(w.due_ns[DT_TIMER_FENCE], 0);
    end(&w);
}

/* The second host's STARTED is still under way. */
static void ranks_to_stop_include_those_whose_host_has_not_said_started(void **state)
{
    struct world w;

    (void)state;
    prepare(&w);
    w.config.max_restarts = 0;
    launch(&w);
    for (size_t host = 0; host < HOSTS; host++)
        greet(&w, host);
    get_ready(&w);
    report_started(&w, 0);
    end_rank(&w, 0, 7, 0);
    answer_query(&w, 0, 1);
    answer_query(&w, 1, 1);
    dt_job_timer(w.job, DT_TIMER_COLLECT);
    assert_non_null(strstr(w.said, " exited with code 7; stopping the other rank\n"));
    end(&w);
}

static void say_hello(struct world *w, size_t host)
{
    union dt_msg m = {
        .rank_hello = { .generation = w->generation[host], .rank = (uint32_t)host, .port = 5000 }
    };

    dt_job_message(w->job, host, DT_MSG_RANK_HELLO, &m);
}

/* b's rank exits with 0 inside dt_init. a's rank then calls dt_init, and would wait for it. */
static void a_rank_that_leaves_before_the_others_call_dt_init_has_failed(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    meet_and_start(&w);
    say_hello(&w, 1);
    end_rank(&w, 1, 0, 0);
    say_hello(&w, 0);
    assert_last_sent(&w, 0, DT_MSG_QUERY);
    end(&w);
}

/* The last rank calls dt_init just before it is killed. The table could contain addresses of a lost
 * host. */
static void no_table_is_sent_while_recovering(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    meet_and_start(&w);
    say_hello(&w, 1);
    end_rank(&w, 1, -1, 9);
    answer_query(&w, 0, 1);
    answer_query(&w, 1, 1);
    dt_job_timer(w.job, DT_TIMER_COLLECT);
    assert_last_sent(&w, 0, DT_MSG_STOP);
    say_hello(&w, 0);
    assert_last_sent(&w, 0, DT_MSG_STOP);
    sweep(&w, 1);
    end_rank(&w, 0, -1, 9);
    sweep(&w, 0);
    assert_int_equal(w.generation[0], 2);
    dt_job_signal(w.job, SIGTERM);
    sweep(&w, 0);
    sweep(&w, 1);
    disconnect(&w, 0);
    disconnect(&w, 1);
    assert_true(w.ended);
    end(&w);
}

/* The loop may hand over a signal together with the end of the last connection. */
static void a_signal_after_the_end_changes_nothing(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    disconnect(&w, 0);
    disconnect(&w, 1);
    assert_true(w.ended);
    *w.said = '\0';
    dt_job_signal(w.job, SIGINT);
    assert_string_equal(w.said, "");
    assert_int_equal(dt_job_exit_code(w.job), DT_EXIT_LAUNCH);
    assert_int_equal(dt_job_ended_by(w.job), 0);
    end(&w);
}

static void the_connection_to_a_silent_host_is_closed(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    greet(&w, 0);
    for (int i = 0; i < 5; i++) {
        w.now_ns += 1000000000;
        dt_job_timer(w.job, DT_TIMER_TICK);
    }
    assert_false(w.open[0]);
    assert_true(w.open[1]); /* a host may take its time to connect */
    dt_job_hung_up(w.job, 0);
    disconnect(&w, 1);
    assert_true(w.ended);
    assert_int_equal(dt_job_exit_code(w.job), DT_EXIT_LAUNCH);
    end(&w);
}

/* dtrun was busy: the answer of a has arrived, but dtrun has not read it yet. */
static void a_host_is_not_silent_if_its_answer_is_read_late(void **state)
{
    union dt_msg pong = { .pong = { .time_ns = 1 } };
    struct world w;

    (void)state;
    begin(&w);
    greet(&w, 0);
    for (int i = 0; i < 4; i++) {
        w.now_ns += 1000000000;
        dt_job_timer(w.job, DT_TIMER_TICK);
    }
    assert_true(w.open[0]);
    assert_int_equal(w.due_ns[DT_TIMER_TICK] - w.now_ns, 1000000);
    dt_job_message(w.job, 0, DT_MSG_PONG, &pong);
    w.now_ns = w.due_ns[DT_TIMER_TICK];
    dt_job_timer(w.job, DT_TIMER_TICK);
    assert_true(w.open[0]);
    assert_int_equal(w.due_ns[DT_TIMER_TICK] - w.now_ns, 1000000000);
    disconnect(&w, 0);
    disconnect(&w, 1);
    assert_true(w.ended);
    end(&w);
}

/* Only dtrun sees the connection end. The agent on b and its ranks may not know for a whole
 * lease. */
static void ranks_move_only_when_those_of_a_lost_host_are_fenced(void **state)
{
    struct world w;
    uint64_t lost_ns;

    (void)state;
    begin(&w);
    meet_and_start(&w);
    disconnect(&w, 1);
    lost_ns = w.now_ns;
    answer_query(&w, 0, 1);
    assert_true(w.open[1]); /* it gets a new connection */
    end_rank(&w, 0, -1, SIGKILL);
    sweep(&w, 0);
    disconnect(&w, 1);
    assert_int_equal(w.generation[0], 1);
    assert_true(w.due_ns[DT_TIMER_FENCE] >= lost_ns + w.config.heartbeat_s * UINT64_C(1000000000));
    w.now_ns = w.due_ns[DT_TIMER_FENCE];
    dt_job_timer(w.job, DT_TIMER_FENCE);
    assert_int_equal(w.generation[0], 2);
    end(&w);
}

/* b comes back each time, but failures begin there. Its ranks move, and no agent sweeps b. */
static void ranks_leave_a_host_in_quarantine_when_those_there_are_fenced(void **state)
{
    struct world w;
    uint64_t lost_ns = 0;

    (void)state;
    launch_to_restart(&w);
    for (uint32_t failure = 1; failure <= 3; failure++) {
        start_ranks(&w);
        lost_ns = w.now_ns;
        disconnect(&w, 1);
        answer_query(&w, 0, failure);
        end_rank(&w, 0, -1, SIGKILL);
        sweep(&w, 0);
        greet(&w, 1);
        if (w.due_ns[DT_TIMER_FENCE]) {
            w.now_ns = w.due_ns[DT_TIMER_FENCE];
            dt_job_timer(w.job, DT_TIMER_FENCE);
        }
    }
    assert_int_equal(w.generation[0], 4);
    assert_int_equal(w.generation[1], 3);
    assert_true(w.now_ns >= lost_ns + w.config.heartbeat_s * UINT64_C(1000000000));
    end(&w);
}

/* Failures begin on b, which goes into quarantine after the third. Then a is lost, before its ranks
 * start: the job needs b after all. */
static void a_host_in_quarantine_comes_back_if_all_others_are_lost(void **state)
{
    struct world w;
    char *report;

    (void)state;
    launch_to_restart(&w);
    for (uint32_t failure = 1; failure <= 3; failure++) {
        w.now_ns += UINT64_C(30000000000); /* no restart waits */
        start_ranks(&w);
        fail_on_b(&w, failure);
        if (failure < 3 && w.generation[1] == failure) {
            w.now_ns = w.due_ns[DT_TIMER_FENCE];
            dt_job_timer(w.job, DT_TIMER_FENCE);
        }
    }
    assert_non_null(strstr(w.said, "continuing without b for 60 s"));
    disconnect(&w, 0);
    disconnect(&w, 0);
    w.now_ns = w.due_ns[DT_TIMER_FENCE];
    dt_job_timer(w.job, DT_TIMER_FENCE);
    assert_int_equal(w.generation[1], 4);
    assert_non_null(strstr(w.said, "continuing with b again"));
    report = dt_job_report(w.job);
    assert_null(strstr(report, "from_generation")); /* no generation has begun without b */
    free(report);
    end(&w);
}

/* a had one in the last recovery, which ended because a does not reach b. */
static void each_recovery_gives_a_lost_host_a_fresh_connection(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    meet_and_start(&w);
    disconnect(&w, 0);
    answer_query(&w, 1, 1);
    end_rank(&w, 1, -1, SIGKILL);
    sweep(&w, 1);
    greet(&w, 0);
    assert_int_equal(w.generation[0], 2);
    answer_probe_with(&w, 0, DT_REACH_CONNECT);
    answer_probe(&w, 1);
    assert_false(w.open[1]);
    sweep(&w, 0);
    disconnect(&w, 0);
    assert_true(w.open[0]);
    end(&w);
}

/* Agents would end their ranks if PING came too late. */
static void limits_of_ranks_do_not_put_off_the_next_ping(void **state)
{
    struct world w;
    uint64_t due_ns;

    (void)state;
    begin(&w);
    meet_and_start(&w);
    due_ns = w.due_ns[DT_TIMER_TICK];
    for (uint32_t ms = 15000; ms > 14000; ms -= 100) {
        union dt_msg m = { .limit = { .generation = w.generation[0], .ms = ms } };

        w.now_ns += 50000000;
        dt_job_message(w.job, 0, DT_MSG_LIMIT, &m);
        assert_true(w.due_ns[DT_TIMER_TICK] <= due_ns);
        due_ns = w.due_ns[DT_TIMER_TICK];
    }
    end(&w);
}

/* b does not reach a. Its ranks wait at the gate, and a goes on without it. */
static void a_host_that_was_never_sent_go_is_not_fenced(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    w.hosts.v[0].slots = 2;
    meet_and_start(&w);
    fail_on_b(&w, 1);
    assert_int_equal(w.generation[1], 2);
    answer_probe_with(&w, 0, DT_REACH_CONNECT);
    answer_probe_with(&w, 1, DT_REACH_CONNECT);
    assert_false(w.open[1]);
    dt_job_hung_up(w.job, 1);
    sweep(&w, 0);
    assert_int_equal(w.due_ns[DT_TIMER_FENCE], 0);
    assert_int_equal(w.generation[0], 3);
    end(&w);
}

/* GO may be under way, or STARTED lost. */
static void a_host_that_was_sent_go_is_fenced(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    for (size_t host = 0; host < HOSTS; host++)
        greet(&w, host);
    get_ready(&w);
    assert_last_sent(&w, 1, DT_MSG_GO);
    disconnect(&w, 1);
    answer_query(&w, 0, 1);
    end_rank(&w, 0, -1, SIGKILL);
    sweep(&w, 0);
    disconnect(&w, 1);
    assert_true(w.due_ns[DT_TIMER_FENCE] >= w.now_ns + w.config.heartbeat_s * UINT64_C(1000000000));
    assert_int_equal(w.generation[0], 1);
    end(&w);
}

/* b comes back in generation 2, and has swept its host when a is lost. Then b is lost for good. */
static void a_host_that_was_swept_while_the_job_recovers_is_not_fenced(void **state)
{
    struct world w;
    union dt_msg ready = { .ready = { .generation = 2 } };

    (void)state;
    prepare(&w);
    w.config.max_restarts = 2;
    launch(&w);
    w.hosts.v[0].slots = 2;
    meet_and_start(&w);
    disconnect(&w, 1);
    answer_query(&w, 0, 1);
    end_rank(&w, 0, -1, SIGKILL);
    sweep(&w, 0);
    greet(&w, 1);
    assert_int_equal(w.generation[1], 2);
    disconnect(&w, 0);
    answer_query(&w, 1, 2);
    dt_job_message(w.job, 1, DT_MSG_READY, &ready);
    sweep(&w, 1);
    greet(&w, 0);
    disconnect(&w, 1);
    disconnect(&w, 1);
    assert_true(w.due_ns[DT_TIMER_FENCE] < w.now_ns + w.config.heartbeat_s * UINT64_C(1000000000));
    w.now_ns = w.due_ns[DT_TIMER_FENCE];
    dt_job_timer(w.job, DT_TIMER_FENCE);
    assert_int_equal(w.generation[0], 3);
    end(&w);
}

static void end_process(struct world *w, size_t host, struct dt_msg_exit m)
{
    m.generation = w->generation[host];
    m.time_ns = w->now_ns;
    m.step = -1;
    dt_job_message(w->job, host, DT_MSG_EXIT, &(union dt_msg){ .exit = m });
}

static void tell_mpi_state(struct world *w, uint32_t rank, bool inside)
{
    union dt_msg m = { .mpi_state = { w->generation[rank], rank, inside } };

    dt_job_message(w->job, rank, DT_MSG_MPI_STATE, &m);
}

static void leave(struct world *w, uint32_t rank)
{
    end_process(w, rank, (struct dt_msg_exit){ .rank = rank });
}

static void assert_missed_fails_after_5_s(struct world *w)
{
    assert_int_equal(w->due_ns[DT_TIMER_MISSED] - w->now_ns, 5000000000);
    w->now_ns = w->due_ns[DT_TIMER_MISSED];
    dt_job_timer(w->job, DT_TIMER_MISSED);
    assert_last_sent(w, 1, DT_MSG_QUERY);
}

static void a_rank_that_misses_mpi_finalize_fails_if_others_still_run(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    meet_and_start(&w);
    tell_mpi_state(&w, 0, true);
    tell_mpi_state(&w, 1, true);
    leave(&w, 0);
    assert_missed_fails_after_5_s(&w);
    end(&w);
}

static void a_rank_that_misses_mpi_init_fails_if_others_come_to_it(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    meet_and_start(&w);
    leave(&w, 0);
    w.now_ns += 1000000000;
    tell_mpi_state(&w, 1, true);
    assert_missed_fails_after_5_s(&w);
    end(&w);
}

static void a_rank_is_not_missed_when_no_other_is_in_mpi(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    meet_and_start(&w);
    leave(&w, 0);
    assert_int_equal(w.due_ns[DT_TIMER_MISSED], 0);
    tell_mpi_state(&w, 1, true);
    tell_mpi_state(&w, 1, false);
    assert_int_equal(w.due_ns[DT_TIMER_MISSED], 0);
    end(&w);
}

static void a_rank_is_not_missed_after_mpi_finalize(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    meet_and_start(&w);
    tell_mpi_state(&w, 0, true);
    tell_mpi_state(&w, 1, true);
    tell_mpi_state(&w, 0, false);
    leave(&w, 0);
    assert_int_equal(w.due_ns[DT_TIMER_MISSED], 0);
    end(&w);
}

static void a_shorter_exit_grace_ends_a_job_that_misses_mpi_finalize(void **state)
{
    struct world w;

    (void)state;
    prepare(&w);
    w.config.exit_grace_s = 2;
    launch(&w);
    meet_and_start(&w);
    tell_mpi_state(&w, 0, true);
    tell_mpi_state(&w, 1, true);
    leave(&w, 0);
    assert_int_equal(w.due_ns[DT_TIMER_STRAGGLERS] - w.now_ns, 2000000000);
    w.now_ns = w.due_ns[DT_TIMER_STRAGGLERS];
    dt_job_timer(w.job, DT_TIMER_STRAGGLERS);
    assert_last_sent(&w, 1, DT_MSG_STOP);
    assert_int_equal(dt_job_exit_code(w.job), DT_EXIT_TIMEOUT);
    end(&w);
}

static void ranks_that_all_miss_mpi_finalize_have_not_failed(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    meet_and_start(&w);
    for (uint32_t r = 0; r < HOSTS; r++) {
        tell_mpi_state(&w, r, true);
        leave(&w, r);
        sweep(&w, r);
    }
    disconnect(&w, 0);
    disconnect(&w, 1);
    assert_true(w.ended);
    assert_int_equal(dt_job_exit_code(w.job), 0);
    end(&w);
}

/* A server, number 3, is killed. Rank 1 overlooks that a call has failed because of it. */
static void a_server_is_needed_by_a_rank_that_overlooks_its_death(void **state)
{
    const struct dt_placement how = { .servers = 1 };
    struct dt_error err = { 0 };
    struct world w;

    (void)state;
    prepare(&w);
    dt_plan_free(&w.plan);
    assert_int_equal(dt_plan_make(&w.plan, &w.hosts, HOSTS, &how, &err), 0);
    w.config.max_restarts = 0;
    launch(&w);
    meet_and_start(&w);
    end_process(&w, 0, (struct dt_msg_exit){ .rank = 3, .code = -1, .signo = SIGKILL });
    end_process(&w, 0, (struct dt_msg_exit){ .rank = 0 });
    end_process(&w, 1, (struct dt_msg_exit){ .rank = 1, .flags = DT_EXITED_PEER_LOST });
    dt_job_timer(w.job, DT_TIMER_COLLECT);
    end_process(&w, 0, (struct dt_msg_exit){ .rank = 2 });
    sweep(&w, 0);
    sweep(&w, 1);
    disconnect(&w, 0);
    disconnect(&w, 1);
    assert_true(w.ended);
    assert_int_equal(dt_job_exit_code(w.job), 128 + SIGKILL);
    end(&w);
}

static void a_stop_while_connecting_waits_for_no_reader(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    w.awaits = "read";
    dt_job_signal(w.job, SIGTERM);
    assert_false(w.open[0] || w.open[1]);
    dt_job_hung_up(w.job, 0);
    dt_job_hung_up(w.job, 1);
    assert_false(w.ended);
    dt_job_timer(w.job, DT_TIMER_PATIENCE);
    assert_int_not_equal(w.due_ns[DT_TIMER_CUT], 0);
    dt_job_timer(w.job, DT_TIMER_CUT);
    assert_true(w.ended);
    assert_int_equal(dt_job_exit_code(w.job), DT_EXIT_SIGNAL + SIGTERM);
    end(&w);
}

static void a_job_told_to_stop_drops_output_only_once_its_reader_is_stuck(void **state)
{
    union dt_msg more = { .output = { .rank = 0, .fd = 1, .data = { (uint8_t *)"more", 4 } } };
    struct world w;

    (void)state;
    begin(&w);
    meet_and_start(&w);
    w.awaits = "read";
    dt_job_signal(w.job, SIGTERM);
    w.nsent[0] = w.nsent[1] = 0;
    w.unread_ms = 1999;
    dt_job_timer(w.job, DT_TIMER_READER);
    assert_int_equal(w.nsent[0] + w.nsent[1], 0);
    w.unread_ms = 2000;
    dt_job_timer(w.job, DT_TIMER_READER);
    assert_non_null(strstr(w.said, "the last output on standard output was not read "
                                   "within 2 s and is dropped"));
    assert_last_sent(&w, 0, DT_MSG_CREDIT);
    assert_last_sent(&w, 1, DT_MSG_CREDIT);
    dt_job_timer(w.job, DT_TIMER_READER);
    assert_true(w.open[0] && w.open[1]);
    w.nsent[0] = 0;
    dt_job_message(w.job, 0, DT_MSG_OUTPUT, &more);
    assert_last_sent(&w, 0, DT_MSG_CREDIT);
    for (size_t host = 0; host < HOSTS; host++) {
        end_rank(&w, host, 0, SIGTERM);
        sweep(&w, host);
    }
    disconnect(&w, 0);
    disconnect(&w, 1);
    assert_false(w.ended); /* dtrun's own messages are to be written */
    dt_job_timer(w.job, DT_TIMER_READER);
    assert_true(w.ended);
    end(&w);
}

static void send_output(struct world *w, size_t host, uint32_t rank, size_t n)
{
    static const uint8_t bytes[16 * 1024];
    union dt_msg m = { .output = { .rank = rank, .fd = 1, .data = { bytes, n } } };

    dt_job_message(w->job, host, DT_MSG_OUTPUT, &m);
}

static void a_host_speaks_only_for_its_own_ranks(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    meet_and_start(&w);
    end_process(&w, 1, (struct dt_msg_exit){ .rank = 0, .code = 7 });
    dt_job_message(w.job, 1, DT_MSG_RANK_HELLO,
                   &(union dt_msg){ .rank_hello = { w.generation[1], 0, 1 } });
    dt_job_message(w.job, 1, DT_MSG_COMMIT,
                   &(union dt_msg){ .commit = { w.generation[1], 5, DT_COMMITTED } });
    send_output(&w, 1, 0, 5);
    assert_int_equal(w.shown, 0);
    send_output(&w, 0, 0, 5);
    assert_int_equal(w.shown, 5);
    for (size_t host = 0; host < HOSTS; host++) {
        end_rank(&w, host, 0, 0);
        sweep(&w, host);
    }
    disconnect(&w, 0);
    disconnect(&w, 1);
    assert_true(w.ended);
    assert_int_equal(dt_job_exit_code(w.job), 0);
    assert_string_equal(w.said, "");
    end(&w);
}

static void a_host_that_sends_more_output_than_it_has_credit_for_is_lost(void **state)
{
    enum { PART = 16 * 1024 };
    struct world w;

    (void)state;
    begin(&w);
    meet_and_start(&w);
    for (size_t sent = 0; sent < DT_STREAM_CREDIT; sent += PART)
        send_output(&w, 1, 1, PART);
    dt_job_shown(w.job, 1, 1, PART);
    send_output(&w, 1, 1, PART);
    assert_true(w.open[1]);
    send_output(&w, 1, 1, 1);
    assert_false(w.open[1]);
    assert_int_equal(w.shown, DT_STREAM_CREDIT + PART);
    dt_job_hung_up(w.job, 1);
    answer_query(&w, 0, 1);
    assert_non_null(strstr(w.said, "b has sent more output than it may"));
    end(&w);
}

/* The fault is for the next generation and did not cause this loss. */
static void the_loss_of_a_host_while_recovering_triggers_no_fault(void **state)
{
    struct world w;

    (void)state;
    begin_injecting(&w, "host:node=1,restart=1");
    meet_and_start(&w);
    end_rank(&w, 0, -1, SIGKILL);
    answer_query(&w, 0, 1);
    answer_query(&w, 1, 1);
    dt_job_timer(w.job, DT_TIMER_COLLECT);
    assert_last_sent(&w, 1, DT_MSG_STOP);
    disconnect(&w, 1);
    assert_true(w.open[1]); /* like any lost host it gets a new connection */
    end(&w);
}

static void the_loss_of_a_host_before_its_ranks_run_triggers_no_fault(void **state)
{
    struct world w;

    (void)state;
    begin_injecting(&w, "host:node=1");
    greet(&w, 0);
    greet(&w, 1);
    assert_last_sent(&w, 1, DT_MSG_START);
    disconnect(&w, 1);
    answer_query(&w, 0, 1);
    assert_true(w.open[1]); /* like any lost host it gets a new connection */
    end(&w);
}

static void begin_in_steps(struct world *w)
{
    prepare(w);
    w->in_step = true;
    launch(w);
    meet_and_start(w);
}

static void signal_step(struct world *w, size_t host, int signo)
{
    union dt_msg m = { .signalled = { .signo = (uint32_t)signo } };

    dt_job_message(w->job, host, DT_MSG_SIGNALLED, &m);
}

static bool gathers(const struct world *w, uint64_t ms)
{
    return w->due_ns[DT_TIMER_GATHER] > w->now_ns + ms * 1000000;
}

static void end_stopped(struct world *w)
{
    for (size_t host = 0; host < HOSTS; host++) {
        assert_last_sent(w, host, DT_MSG_STOP);
        end_rank(w, host, 0, 0);
        sweep(w, host);
    }
    disconnect(w, 0);
    disconnect(w, 1);
    assert_true(w->ended);
    assert_int_equal(dt_job_exit_code(w->job), 128 + SIGTERM);
    end(w);
}

/* A rank whose agent gets STOP first would get SIGTERM again when the signal reaches its step. */
static void a_signal_waits_until_every_step_has_it(void **state)
{
    struct world w;

    (void)state;
    for (int order = 0; order < 3; order++) { /* dtrun has it first, second or last */
        begin_in_steps(&w);
        for (int i = 0, host = 0; i < 3; i++) {
            if (i == order)
                dt_job_signal(w.job, SIGTERM);
            else
                signal_step(&w, (size_t)host++, SIGTERM);
            assert_int_equal(gathers(&w, 1500), host < HOSTS);
            assert_last_sent(&w, 0, DT_MSG_GO);
        }
        dt_job_timer(w.job, DT_TIMER_GATHER);
        end_stopped(&w);
    }
}

static void end_step(struct world *w, size_t host)
{
    end_rank(w, host, 0, 0);
    sweep(w, host);
}

/* A step that has ended reports nothing any more. */
static void a_signal_does_not_wait_for_a_step_that_ends(void **state)
{
    static void (*const ways[])(struct world * w, size_t host) = { end_step, disconnect };
    struct world w;

    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        begin_in_steps(&w);
        dt_job_signal(w.job, SIGTERM);
        signal_step(&w, 0, SIGTERM);
        assert_true(gathers(&w, 1500));
        w.now_ns += 150 * 1000000;
        ways[i](&w, 1);
        assert_int_equal(w.due_ns[DT_TIMER_GATHER], w.now_ns + 850 * 1000000);
        dt_job_timer(w.job, DT_TIMER_GATHER);
        assert_last_sent(&w, 0, DT_MSG_STOP);
        end(&w);
    }
}

static void a_signal_for_dtrun_alone_stops_the_job(void **state)
{
    struct world w;

    (void)state;
    begin_in_steps(&w);
    dt_job_signal(w.job, SIGTERM);
    assert_false(gathers(&w, 2500));
    dt_job_timer(w.job, DT_TIMER_GATHER);
    end_stopped(&w);
}

/* SIGUSR1 and SIGUSR2 mean different things to a program. Neither replaces the other. */
static void another_signal_that_comes_meanwhile_is_forwarded_too(void **state)
{
    struct world w;

    (void)state;
    begin_in_steps(&w);
    dt_job_signal(w.job, SIGUSR1);
    dt_job_signal(w.job, SIGUSR2);
    dt_job_timer(w.job, DT_TIMER_GATHER);
    assert_int_equal(w.nsignals[0], 2);
    assert_int_equal(w.signals[0][0], SIGUSR1);
    assert_int_equal(w.signals[0][1], SIGUSR2);
    dt_job_signal(w.job, SIGTERM);
    dt_job_timer(w.job, DT_TIMER_GATHER);
    end_stopped(&w);
}

static void a_signal_for_ranks_that_do_not_run_yet_is_reported(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    greet(&w, 0);
    greet(&w, 1);
    assert_last_sent(&w, 0, DT_MSG_START);
    dt_job_signal(w.job, SIGUSR1);
    assert_int_equal(w.nsignals[0], 0);
    assert_non_null(strstr(w.said, "SIGUSR1 reaches no rank, because none runs now\n"));
    get_ready(&w);
    dt_job_signal(w.job, SIGUSR1);
    assert_int_equal(w.nsignals[0], 1);
    dt_job_signal(w.job, SIGTERM);
    end_stopped(&w);
}

/* Step 0 has reported SIGUSR1, which was passed on. Step 1 is late. */
static void pass_on_usr1(struct world *w)
{
    begin_in_steps(w);
    signal_step(w, 0, SIGUSR1);
    w->now_ns += UINT64_C(2000) * 1000000;
    dt_job_timer(w->job, DT_TIMER_GATHER);
    assert_int_equal(w->nsignals[0], 1);
    w->now_ns += UINT64_C(3000) * 1000000;
}

static void a_late_report_does_not_pass_a_signal_on_again(void **state)
{
    struct world w;

    (void)state;
    pass_on_usr1(&w);
    signal_step(&w, 1, SIGUSR1);
    assert_false(gathers(&w, 0));
    signal_step(&w, 1, SIGUSR1); /* the next signal */
    assert_true(gathers(&w, 0));
    signal_step(&w, 0, SIGUSR1);
    dt_job_timer(w.job, DT_TIMER_GATHER);
    assert_int_equal(w.nsignals[0], 2);
    end(&w);
}

/* SIGINT would kill ranks that SIGHUP has told to end. */
static void a_late_report_of_a_signal_that_gave_way_is_no_new_one(void **state)
{
    struct world w;

    (void)state;
    begin_in_steps(&w);
    dt_job_signal(w.job, SIGHUP);
    signal_step(&w, 0, SIGINT);
    w.now_ns += UINT64_C(2000) * 1000000;
    dt_job_timer(w.job, DT_TIMER_GATHER);
    assert_last_sent(&w, 0, DT_MSG_STOP);
    w.now_ns += UINT64_C(3000) * 1000000;
    signal_step(&w, 1, SIGINT);
    assert_false(gathers(&w, 0));
    end(&w);
}

/* Step 0 has reported the signal, and is then lost. */
static void a_late_report_is_late_even_if_the_first_step_is_gone(void **state)
{
    struct world w;

    (void)state;
    begin_in_steps(&w);
    signal_step(&w, 0, SIGUSR1);
    disconnect(&w, 0);
    answer_query(&w, 1, 1);
    assert_true(w.open[0]); /* it gets a new connection */
    w.now_ns += UINT64_C(2000) * 1000000;
    dt_job_timer(w.job, DT_TIMER_GATHER);
    w.now_ns += UINT64_C(3000) * 1000000;
    signal_step(&w, 1, SIGUSR1);
    assert_false(gathers(&w, 0));
    end(&w);
}

static void a_step_that_has_reported_a_signal_reports_another(void **state)
{
    struct world w;

    (void)state;
    pass_on_usr1(&w);
    signal_step(&w, 0, SIGUSR1);
    assert_true(gathers(&w, 0));
    end(&w);
}

static void a_report_that_is_too_late_is_of_another_signal(void **state)
{
    struct world w;

    (void)state;
    pass_on_usr1(&w);
    w.now_ns += UINT64_C(7000) * 1000000;
    signal_step(&w, 1, SIGUSR1);
    assert_true(gathers(&w, 0));
    end(&w);
}

static void no_report_is_late_after_a_signal_for_dtrun_alone(void **state)
{
    struct world w;

    (void)state;
    begin_in_steps(&w);
    dt_job_signal(w.job, SIGUSR1);
    w.now_ns += UINT64_C(2000) * 1000000;
    dt_job_timer(w.job, DT_TIMER_GATHER);
    w.now_ns += UINT64_C(3000) * 1000000;
    signal_step(&w, 1, SIGUSR1);
    assert_true(gathers(&w, 0));
    end(&w);
}

/* The second SIGINT would kill the ranks without grace. */
static void steps_that_report_an_interrupt_do_not_interrupt_again(void **state)
{
    struct world w;

    (void)state;
    begin_in_steps(&w);
    dt_job_signal(w.job, SIGINT);
    signal_step(&w, 0, SIGINT);
    signal_step(&w, 1, SIGINT);
    assert_int_equal(w.due_ns[DT_TIMER_GATHER], 0);
    end_rank(&w, 0, 0, 0);
    end_rank(&w, 1, 0, 0);
    end(&w);
}

/* The second SIGINT would kill the ranks without grace, also if the job has acted on another signal
 * since, or if a step reports the interrupt long after another one has. */
static void a_late_report_of_an_interrupt_does_not_interrupt_again(void **state)
{
    struct world w;

    (void)state;
    for (int late = 0; late < 2; late++) {
        begin_in_steps(&w);
        signal_step(&w, 0, SIGUSR1);
        if (late)
            signal_step(&w, 0, SIGINT);
        dt_job_signal(w.job, SIGINT);
        dt_job_timer(w.job, DT_TIMER_GATHER);
        w.due_ns[DT_TIMER_GATHER] = 0;
        w.now_ns += UINT64_C(1000000) * (late ? 5000 : 500);
        signal_step(&w, 1, SIGINT);
        assert_int_equal(w.due_ns[DT_TIMER_GATHER], 0);
        end_rank(&w, 0, 0, 0);
        end_rank(&w, 1, 0, 0);
        end(&w);
    }
}

/* Rank 1 dies until the job gives up. Rank 0 has restored nothing in each generation. */
static void fail_without_progress(struct world *w, size_t last_rank)
{
    for (uint32_t i = 1; i <= 4; i++) {
        size_t rank = i == 4 ? last_rank : 1;
        union dt_msg restored = { .commit = { w->generation[0], -1, DT_RESTORED } };

        say_hello(w, 0);
        say_hello(w, 1);
        dt_job_message(w->job, 0, DT_MSG_COMMIT, &restored);
        end_rank(w, rank, -1, 11);
        answer_query(w, 0, i);
        answer_query(w, 1, i);
        dt_job_timer(w->job, DT_TIMER_COLLECT);
        if (i == 4)
            return;
        end_rank(w, 1 - rank, -1, 9);
        w->now_ns += UINT64_C(30000000000); /* no restart waits */
        sweep(w, 0);
        sweep(w, 1);
        start_ranks(w);
    }
}

static void a_job_says_that_it_has_failed_in_the_same_way_each_time(void **state)
{
    struct world w;

    (void)state;
    for (size_t last_rank = 0; last_rank < HOSTS; last_rank++) {
        prepare(&w);
        w.config.max_restarts = -1;
        w.config.on_host_loss = DT_HOST_LOSS_STOP; /* which leaves no host out */
        launch(&w);
        meet_and_start(&w);
        fail_without_progress(&w, last_rank);
        assert_non_null(strstr(w.said, "giving up: 3 restarts without progress"));
        assert_int_equal(strstr(w.said, "each time rank 1 failed in the same way") != NULL,
                         last_rank == 1);
        end(&w);
    }
}

/* The rank of this host exits with 1, after a line of standard error. */
static void fail_saying(struct world *w, size_t host, const char *line, bool eof)
{
    const uint32_t rank = (uint32_t)host;
    union dt_msg text = { .output = { .rank = rank, .fd = STDERR_FILENO } };
    union dt_msg m = { .output_eof = { .rank = rank, .fd = STDERR_FILENO } };

    text.output.data.p = (const uint8_t *)line;
    text.output.data.n = strlen(line);
    end_rank(w, host, 1, 0);
    dt_job_message(w->job, host, DT_MSG_OUTPUT, &text);
    if (eof)
        dt_job_message(w->job, host, DT_MSG_OUTPUT_EOF, &m);
}

static const char lost_peer[] = "[gloo/transport/tcp/pair.cc:598] Connection closed by peer\n";

static void begin_with_a_lost_peer(struct world *w, bool eof)
{
    prepare(w);
    w->config.max_restarts = 0;
    launch(w);
    meet_and_start(w);
    fail_saying(w, 0, lost_peer, eof);
    answer_query(w, 0, 1);
    answer_query(w, 1, 1);
    if (!eof)
        dt_job_timer(w->job, DT_TIMER_COLLECT);
    assert_int_equal(w->due_ns[DT_TIMER_COLLECT] - w->now_ns, 1000000000);
    assert_string_equal(w->said, "");
}

/* A process that rank 0 has left may keep its standard error open. */
static void a_rank_that_says_that_it_lost_a_peer_is_not_the_cause(void **state)
{
    struct world w;

    (void)state;
    for (int eof = 0; eof < 2; eof++) {
        begin_with_a_lost_peer(&w, eof);
        fail_saying(&w, 1, "no data\n", true);
        assert_non_null(strstr(w.said, "rank 1 (b, pid 101) exited with code 1\n"));
        assert_null(strstr(w.said, "hint"));
        end(&w);
    }
}

static void a_rank_that_says_that_it_lost_a_peer_is_explained_in_time_or_gets_a_hint(void **state)
{
    struct world w;

    (void)state;
    for (int eof = 0; eof < 2; eof++) {
        begin_with_a_lost_peer(&w, eof);
        w.now_ns += 1000000000;
        dt_job_timer(w.job, DT_TIMER_COLLECT);
        assert_non_null(strstr(w.said, "rank 0 (a, pid 100) exited with code 1; stopping"));
        assert_non_null(strstr(w.said, "see the output of those that still run: 1\n"));
        end(&w);
    }
}

static void another_rank_that_lost_a_peer_does_not_put_off_the_decision(void **state)
{
    const struct dt_placement by_slot = { 0 };
    struct dt_error err = { 0 };
    uint64_t due_ns;
    struct world w;

    (void)state;
    prepare(&w);
    dt_plan_free(&w.plan);
    assert_int_equal(dt_plan_make(&w.plan, &w.hosts, 3, &by_slot, &err), 0);
    w.config.max_restarts = 0;
    launch(&w);
    meet_and_start(&w);
    fail_saying(&w, 0, lost_peer, true);
    answer_query(&w, 0, 1);
    answer_query(&w, 1, 1);
    due_ns = w.due_ns[DT_TIMER_COLLECT];
    w.now_ns += 500000000;
    fail_saying(&w, 1, lost_peer, true);
    assert_int_equal(w.due_ns[DT_TIMER_COLLECT], due_ns);
    end(&w);
}

static void ranks_that_have_all_lost_a_peer_are_not_awaited(void **state)
{
    struct world w;

    (void)state;
    begin_with_a_lost_peer(&w, true);
    fail_saying(&w, 1, lost_peer, true);
    assert_non_null(strstr(w.said, "rank 0 (a, pid 100) exited with code 1\n"));
    assert_non_null(strstr(w.said, "see what the others printed\n"));
    end(&w);
}

static void take_stdin(struct world *w, size_t host, uint32_t bytes)
{
    union dt_msg m = { .stdin_credit = { w->generation[host], bytes } };

    dt_job_message(w->job, host, DT_MSG_STDIN_CREDIT, &m);
}

/* b's rank exits while a's is in dt_init, but that then ends well, too. */
static void standard_input_goes_on_if_nothing_has_failed_after_all(void **state)
{
    struct world w;

    (void)state;
    prepare(&w);
    w.config.stdin_rank = DT_STDIN_ALL;
    launch(&w);
    meet_and_start(&w);
    say_hello(&w, 0);
    end_rank(&w, 1, 0, 0);
    w.credited = 0;
    take_stdin(&w, 0, 10);
    take_stdin(&w, 1, 10);
    assert_int_equal(w.credited, 0);
    end_process(&w, 0, (struct dt_msg_exit){ .flags = DT_EXITED_LINKED | DT_EXITED_FINALIZED });
    answer_query(&w, 0, 1);
    answer_query(&w, 1, 1);
    dt_job_timer(w.job, DT_TIMER_COLLECT);
    assert_int_equal(w.credited, 10);
    end(&w);
}

static void a_stop_while_recovering_waits_for_no_new_connection(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    meet_and_start(&w);
    disconnect(&w, 1);
    answer_query(&w, 0, 1);
    assert_true(w.open[1]);
    dt_job_signal(w.job, SIGTERM);
    assert_false(w.open[1]);
    end(&w);
}

static void a_job_that_stops_does_not_miss_start_timeout(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    greet(&w, 0);
    greet(&w, 1);
    dt_job_signal(w.job, SIGTERM);
    dt_job_timer(w.job, DT_TIMER_START);
    sweep(&w, 0);
    sweep(&w, 1);
    disconnect(&w, 0);
    disconnect(&w, 1);
    assert_true(w.ended);
    assert_int_equal(dt_job_exit_code(w.job), 128 + SIGTERM);
    end(&w);
}

/* As on a host whose file system hangs: nothing but this timer ends the silence. */
static void hosts_whose_ranks_do_not_get_ready_are_named(void **state)
{
    struct world w;

    (void)state;
    prepare(&w);
    w.config.start_timeout_s = 0;
    launch(&w);
    for (size_t host = 0; host < HOSTS; host++)
        greet(&w, host);
    for (size_t host = 0; host < HOSTS; host++)
        answer_probe(&w, host);
    assert_int_equal(w.due_ns[DT_TIMER_START], w.now_ns + 30000000000);
    dt_job_timer(w.job, DT_TIMER_START);
    assert_non_null(strstr(w.said, "a, b: start the ranks: not done after 30 s; is a file system"));
    for (size_t host = 0; host < HOSTS; host++)
        say_ready(&w, host);
    assert_int_equal(w.due_ns[DT_TIMER_START], 0);
    end(&w);
}

static void start_timeout_limits_a_restart_too(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    meet_and_start(&w);
    assert_int_equal(w.due_ns[DT_TIMER_START], 0);
    end_rank(&w, 1, -1, 9);
    answer_query(&w, 0, 1);
    answer_query(&w, 1, 1);
    dt_job_timer(w.job, DT_TIMER_COLLECT);
    sweep(&w, 1);
    end_rank(&w, 0, -1, 9);
    sweep(&w, 0);
    assert_int_equal(w.generation[0], 2);
    assert_int_equal(w.due_ns[DT_TIMER_START], w.now_ns + 60000000000);
    answer_probe(&w, 0);
    answer_probe(&w, 1);
    say_ready(&w, 0);
    dt_job_timer(w.job, DT_TIMER_START);
    assert_non_null(strstr(w.said, "b: start the ranks: not done within the 60 s of"));
    assert_non_null(strstr(w.said, "1 of 2 hosts are not ready after 60 s (--start-timeout)\n"));
    sweep(&w, 0);
    sweep(&w, 1);
    disconnect(&w, 0);
    disconnect(&w, 1);
    assert_true(w.ended);
    assert_int_equal(dt_job_exit_code(w.job), DT_EXIT_LAUNCH);
    end(&w);
}

static void a_second_interrupt_ends_the_grace(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    meet_and_start(&w);
    dt_job_signal(w.job, SIGINT);
    assert_last_sent(&w, 0, DT_MSG_SIGNAL);
    assert_int_not_equal(w.due_ns[DT_TIMER_GRACE], 0);
    dt_job_signal(w.job, SIGINT);
    assert_last_sent(&w, 0, DT_MSG_STOP);
    assert_int_equal(w.due_ns[DT_TIMER_GRACE], 0);
    end(&w);
}

static void a_third_interrupt_does_not_put_off_the_end(void **state)
{
    struct world w;
    uint64_t due_ns;

    (void)state;
    begin(&w);
    meet_and_start(&w);
    dt_job_signal(w.job, SIGINT);
    dt_job_signal(w.job, SIGINT);
    due_ns = w.due_ns[DT_TIMER_PATIENCE];
    assert_int_not_equal(due_ns, 0);
    w.now_ns += 1000000000;
    dt_job_signal(w.job, SIGINT);
    assert_int_equal(w.due_ns[DT_TIMER_PATIENCE], due_ns);
    end(&w);
}

static void a_second_ctrl_z_changes_nothing(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    meet_and_start(&w);
    dt_job_signal(w.job, SIGTSTP);
    dt_job_signal(w.job, SIGTSTP);
    assert_int_equal(w.nsignals[0], 1);
    assert_int_equal(w.signals[0][0], SIGSTOP);
    end(&w);
}

static void a_suspended_job_does_not_use_up_its_exit_grace(void **state)
{
    struct world w;
    uint64_t straggles_ns, ends_ns;

    (void)state;
    prepare(&w);
    w.config.exit_grace_s = 10;
    w.config.timeout_s = 10;
    w.away_ns = UINT64_C(3600000000000);
    launch(&w);
    meet_and_start(&w);
    leave(&w, 0);
    straggles_ns = w.due_ns[DT_TIMER_STRAGGLERS];
    ends_ns = w.due_ns[DT_TIMER_TIMEOUT];
    dt_job_signal(w.job, SIGTSTP);
    answer_query(&w, 0, 1);
    answer_query(&w, 1, 1);
    assert_int_equal(w.due_ns[DT_TIMER_STRAGGLERS], straggles_ns + w.away_ns);
    assert_int_equal(w.due_ns[DT_TIMER_TIMEOUT], ends_ns);
    end(&w);
}

/* a's agent refuses its ranks after b was lost, while they are being ended anyway. */
static void a_refusal_while_recovering_does_not_count(void **state)
{
    struct world w;
    union dt_msg refused;

    (void)state;
    begin(&w);
    greet(&w, 0);
    greet(&w, 1);
    disconnect(&w, 1);
    answer_query(&w, 0, 1);
    refused = (union dt_msg){ .spawn_failed = { .generation = 1,
                                                .step = DT_SPAWN_EXEC,
                                                .error = ENOENT,
                                                .what = (char *)"./train" } };
    dt_job_message(w.job, 0, DT_MSG_SPAWN_FAILED, &refused);
    greet(&w, 1);
    assert_int_equal(w.generation[0], 2);
    start_ranks(&w);
    for (size_t host = 0; host < HOSTS; host++) {
        end_rank(&w, host, 0, 0);
        sweep(&w, host);
    }
    disconnect(&w, 0);
    disconnect(&w, 1);
    assert_int_equal(dt_job_exit_code(w.job), 0);
    assert_null(strstr(w.said, "./train"));
    end(&w);
}

static size_t count_said(const struct world *w, const char *text)
{
    size_t n = 0;

    for (const char *s = w->said; (s = strstr(s, text)); s++)
        n++;
    return n;
}

/* Neither a, which has all slots, nor b comes back. */
static void fail_to_come_back(struct world *w)
{
    disconnect(w, 0);
    assert_true(w->open[1]);
    disconnect(w, 1);
    assert_true(w->due_ns[DT_TIMER_OUTAGE] > w->now_ns);
    w->now_ns = w->due_ns[DT_TIMER_OUTAGE];
    dt_job_timer(w->job, DT_TIMER_OUTAGE);
    assert_true(w->open[0]);
}

static void a_job_says_where_it_goes_on_when_an_outage_is_over(void **state)
{
    const struct dt_placement by_slot = { 0 };
    struct dt_error err = { 0 };
    struct world w;

    (void)state;
    prepare(&w);
    dt_plan_free(&w.plan);
    w.hosts.v[0].slots = w.hosts.v[1].slots = 2;
    assert_int_equal(dt_plan_make(&w.plan, &w.hosts, 1, &by_slot, &err), 0);
    launch(&w);
    greet(&w, 0);
    disconnect(&w, 0); /* its ranks are lost */
    fail_to_come_back(&w);
    assert_int_equal(count_said(&w, "continuing without a"), 1);
    for (int i = 0; i < 3; i++)
        fail_to_come_back(&w);
    assert_int_equal(count_said(&w, "continuing without a"), 1);
    disconnect(&w, 0);
    greet(&w, 1);
    assert_int_equal(count_said(&w, "continuing without a: 1 rank on the 2 slots of 1 host"), 2);
    assert_int_equal(w.generation[1], 2);
    end(&w);
}

/* The hosts do not reach each other, and all are needed. */
static void a_job_that_waits_for_hosts_tells_once_what_is_wrong(void **state)
{
    struct world w;

    (void)state;
    prepare(&w);
    w.config.no_oversubscribe = true;
    launch(&w);
    meet_and_start(&w);
    fail_on_b(&w, 1);
    for (uint32_t generation = 2; generation < 5; generation++) {
        assert_int_equal(w.generation[0], generation);
        answer_probe_with(&w, 0, DT_REACH_CONNECT);
        answer_probe_with(&w, 1, DT_REACH_CONNECT);
        sweep(&w, 0);
        disconnect(&w, 1);
        w.now_ns = w.due_ns[DT_TIMER_OUTAGE];
        dt_job_timer(w.job, DT_TIMER_OUTAGE);
        greet(&w, 1);
    }
    assert_int_equal(count_said(&w, "a cannot reach b"), 1);
    assert_int_equal(count_said(&w, "b cannot reach a"), 1);
    end(&w);
}

/* b's agent is sent SIGTERM, and then finds a process of an earlier generation that does not end.
 */
static void a_host_that_is_being_left_is_not_left_again(void **state)
{
    union dt_msg stuck = { .spawn_failed = { .generation = 1,
                                             .step = DT_SPAWN_LEFTOVER,
                                             .what = (char *)"1 process waits" } };
    struct world w;

    (void)state;
    begin(&w);
    greet(&w, 0);
    greet(&w, 1);
    signal_step(&w, 1, SIGTERM);
    assert_non_null(strstr(w.said, "b: dtrun-agent was sent SIGTERM; leaving this host"));
    dt_job_message(w.job, 1, DT_MSG_SPAWN_FAILED, &stuck);
    assert_null(strstr(w.said, "1 process waits"));
    end_rank(&w, 0, 0, SIGTERM);
    sweep(&w, 0);
    assert_int_equal(w.generation[0], 2);
    assert_int_equal(w.generation[1], 1);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_that_is_being_left_is_not_left_again),
        cmocka_unit_test(a_job_says_where_it_goes_on_when_an_outage_is_over),
        cmocka_unit_test(a_job_that_waits_for_hosts_tells_once_what_is_wrong),
        cmocka_unit_test(another_signal_that_comes_meanwhile_is_forwarded_too),
        cmocka_unit_test(a_signal_for_ranks_that_do_not_run_yet_is_reported),
        cmocka_unit_test(steps_that_report_an_interrupt_do_not_interrupt_again),
        cmocka_unit_test(a_late_report_of_an_interrupt_does_not_interrupt_again),
        cmocka_unit_test(a_job_says_that_it_has_failed_in_the_same_way_each_time),
        cmocka_unit_test(a_rank_that_says_that_it_lost_a_peer_is_not_the_cause),
        cmocka_unit_test(a_rank_that_says_that_it_lost_a_peer_is_explained_in_time_or_gets_a_hint),
        cmocka_unit_test(another_rank_that_lost_a_peer_does_not_put_off_the_decision),
        cmocka_unit_test(ranks_that_have_all_lost_a_peer_are_not_awaited),
        cmocka_unit_test(standard_input_goes_on_if_nothing_has_failed_after_all),
        cmocka_unit_test(a_stop_while_recovering_waits_for_no_new_connection),
        cmocka_unit_test(a_job_that_stops_does_not_miss_start_timeout),
        cmocka_unit_test(start_timeout_limits_a_restart_too),
        cmocka_unit_test(hosts_whose_ranks_do_not_get_ready_are_named),
        cmocka_unit_test(a_second_interrupt_ends_the_grace),
        cmocka_unit_test(a_third_interrupt_does_not_put_off_the_end),
        cmocka_unit_test(a_second_ctrl_z_changes_nothing),
        cmocka_unit_test(a_suspended_job_does_not_use_up_its_exit_grace),
        cmocka_unit_test(a_refusal_while_recovering_does_not_count),
        cmocka_unit_test(ranks_that_exit_with_0_end_the_job),
        cmocka_unit_test(tensorflow_is_refused_where_ranks_have_no_port),
        cmocka_unit_test(a_killed_rank_restarts_the_job_once_all_are_gone),
        cmocka_unit_test(a_restart_waits_unless_the_ranks_ran_for_a_minute),
        cmocka_unit_test(ranks_to_stop_include_those_whose_host_has_not_said_started),
        cmocka_unit_test(a_rank_that_leaves_before_the_others_call_dt_init_has_failed),
        cmocka_unit_test(no_table_is_sent_while_recovering),
        cmocka_unit_test(a_signal_after_the_end_changes_nothing),
        cmocka_unit_test(the_connection_to_a_silent_host_is_closed),
        cmocka_unit_test(a_host_is_not_silent_if_its_answer_is_read_late),
        cmocka_unit_test(ranks_move_only_when_those_of_a_lost_host_are_fenced),
        cmocka_unit_test(each_recovery_gives_a_lost_host_a_fresh_connection),
        cmocka_unit_test(ranks_leave_a_host_in_quarantine_when_those_there_are_fenced),
        cmocka_unit_test(a_host_in_quarantine_comes_back_if_all_others_are_lost),
        cmocka_unit_test(limits_of_ranks_do_not_put_off_the_next_ping),
        cmocka_unit_test(a_host_that_was_never_sent_go_is_not_fenced),
        cmocka_unit_test(a_host_that_was_sent_go_is_fenced),
        cmocka_unit_test(a_host_that_was_swept_while_the_job_recovers_is_not_fenced),
        cmocka_unit_test(a_rank_that_misses_mpi_finalize_fails_if_others_still_run),
        cmocka_unit_test(a_rank_that_misses_mpi_init_fails_if_others_come_to_it),
        cmocka_unit_test(a_rank_is_not_missed_when_no_other_is_in_mpi),
        cmocka_unit_test(a_rank_is_not_missed_after_mpi_finalize),
        cmocka_unit_test(a_shorter_exit_grace_ends_a_job_that_misses_mpi_finalize),
        cmocka_unit_test(ranks_that_all_miss_mpi_finalize_have_not_failed),
        cmocka_unit_test(a_server_is_needed_by_a_rank_that_overlooks_its_death),
        cmocka_unit_test(a_stop_while_connecting_waits_for_no_reader),
        cmocka_unit_test(a_job_told_to_stop_drops_output_only_once_its_reader_is_stuck),
        cmocka_unit_test(a_host_speaks_only_for_its_own_ranks),
        cmocka_unit_test(a_host_that_sends_more_output_than_it_has_credit_for_is_lost),
        cmocka_unit_test(the_loss_of_a_host_while_recovering_triggers_no_fault),
        cmocka_unit_test(the_loss_of_a_host_before_its_ranks_run_triggers_no_fault),
        cmocka_unit_test(a_signal_waits_until_every_step_has_it),
        cmocka_unit_test(a_signal_for_dtrun_alone_stops_the_job),
        cmocka_unit_test(a_signal_does_not_wait_for_a_step_that_ends),
        cmocka_unit_test(a_late_report_does_not_pass_a_signal_on_again),
        cmocka_unit_test(a_late_report_of_a_signal_that_gave_way_is_no_new_one),
        cmocka_unit_test(a_late_report_is_late_even_if_the_first_step_is_gone),
        cmocka_unit_test(a_step_that_has_reported_a_signal_reports_another),
        cmocka_unit_test(a_report_that_is_too_late_is_of_another_signal),
        cmocka_unit_test(no_report_is_late_after_a_signal_for_dtrun_alone),
    };

    return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
