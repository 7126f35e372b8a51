#include "launcher/agent/agent.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/agent/facts/gpuask.h"
#include "launcher/agent/facts/gpus.h"
#include "launcher/agent/facts/gpustate.h"
#include "launcher/agent/facts/hostfacts.h"
#include "launcher/agent/facts/hostinfo.h"
#include "launcher/agent/facts/netaddrs.h"
#include "launcher/agent/generation.h"
#include "launcher/agent/io/channel.h"
#include "launcher/agent/io/files.h"
#include "launcher/agent/io/standby.h"
#include "launcher/agent/jobsignals.h"
#include "launcher/agent/lease.h"
#include "launcher/agent/probe/probe.h"
#include "launcher/base/clock.h"
#include "launcher/base/mem.h"
#include "launcher/base/uvloop.h"

enum {
    LAST_SWEEP_MS = 5 * 1000, /* then the keeper takes over */
    SLOW_MS = 5 * 1000,       /* a file operation that takes longer is reported to the user */
    ALIVE_MS = 250,           /* between signs of life while PINGs are not answered in time */
    DYING_MS = 8 * 1000,      /* an ANSWER waits this long for deaths; the launcher waits longer */
};

struct agent {
    uv_loop_t loop;
    uv_signal_t child_signal;
    uv_poll_t keeper_poll;
    struct dt_keeper *keeper;
    int keeper_fd;
    struct dt_lease lease;
    struct dt_agent_host host;
    struct dt_files *files;
    bool told_slow;
    uint64_t unsolicited_ns; /* when test_connection last sent a PONG */
    uint64_t alive_ns;       /* when say_alive_if_due last sent a PONG, or begin_work ran */
    struct dt_jobsignals *signals;
    struct dt_probe *probe;
    uint16_t probe_port;
    struct dt_generation *generation; /* NULL before the first START */
    uint32_t last_generation;
    uint32_t query;         /* id of the newest QUERY */
    uv_timer_t query_timer; /* the timer and query_look run until the query is answered */
    uv_prepare_t query_look;
};

static bool has_ranks(const struct agent *a)
{
    return a->generation && !dt_generation_over(a->generation);
}

/* Ends every process of the job on this host, prints "what (why)" if what is given, and exits. It
 * prints last, because the write may block. */
static __attribute__((noreturn)) void leave(struct agent *a, int code, const char *what,
                                            const char *why)
{
    bool ran = has_ranks(a);

    dt_keeper_end_all(a->keeper, LAST_SWEEP_MS);
    if (what)
        fprintf(stderr, "dtrun-agent: %s (%s)%s\n", what, why,
                ran ? "; its ranks were killed" : "");
    _exit(code);
}

/* If the launcher closes the connection while no rank runs, it has told the user why. */
static void on_gone(void *arg, const char *why)
{
    bool expected = !why && !has_ranks(arg);

    leave(arg, DT_EXIT_LAUNCH, expected ? NULL : "lost the launcher",
          why ? why : "it closed the connection");
}

/* Once its ranks have ended, an agent has nothing to lose: dtrun may only be late with END, because
 * it was stopped. */
static void on_lease_expired(void *arg)
{
    const struct agent *a = arg;

    if (a->generation && dt_generation_over(a->generation))
        leave(arg, DT_EXIT_LAUNCH, NULL, NULL);
    on_gone(arg, "it has been silent for too long; --heartbeat gives it longer");
}

/* While the lease is in doubt, the launcher may have started other ranks in place of these, so
 * these must stand still. */
static void on_doubt(void *arg, bool on)
{
    struct agent *a = arg;

    if (a->generation)
        dt_generation_signal(a->generation, on ? SIGSTOP : SIGCONT);
}

static void on_keeper(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    leave(poll->data, DT_EXIT_LAUNCH, "lost its keeper", "it was killed");
}

/* If the socket is full, it holds bytes that the keeper has not read yet. These show that the
 * worker is alive, so one more is not needed. */
static void beat(const struct agent *a)
{
    send(a->keeper_fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void send_unsolicited_pong(struct agent *a)
{
    const struct dt_msg_pong pong = { .time_ns = dt_now_ns() };

    dt_channel_send(a->host.channel, DT_MSG_PONG, &pong);
}

/* Called while other work takes long. Meanwhile messages from the launcher may wait unread, so
 * launcher_heard_ns, which the keeper reads, becomes 0: the lease cannot end now. */
static void say_alive(struct agent *a)
{
    atomic_store(&a->keeper->launcher_heard_ns, 0);
    beat(a);
    send_unsolicited_pong(a);
}

/* A dtrun that the user has stopped sends nothing. If its machine or the network fails meanwhile,
 * only a write shows this: without acknowledgements TCP gives up, and sshd closes the worker's
 * input. */
static void test_connection(struct agent *a)
{
    uint64_t now = dt_now_ns();

    if (now - a->unsolicited_ns < a->lease.ms * UINT64_C(1000000) ||
        !dt_channel_has_room(a->host.channel))
        return;
    a->unsolicited_ns = now;
    send_unsolicited_pong(a);
}

static void on_lease_tick(void *arg)
{
    struct agent *a = arg;

    beat(a);
    if (a->lease.held)
        test_connection(a);
}

/* Another thread calls this while a file system blocks the loop. */
static void on_blocked(void *arg, const char *what, uint64_t ms)
{
    struct agent *a = arg;
    struct dt_msg_log slow;

    say_alive(a);
    if (ms < SLOW_MS || a->told_slow)
        return;
    a->told_slow = true;
    slow = (struct dt_msg_log){ .text = dt_xasprintf("%s does not respond; waiting for it", what) };
    dt_channel_send(a->host.channel, DT_MSG_LOG, &slow);
    free(slow.text);
}

/* Begins work that may block the loop for long. Call say_alive_if_due often until it is done. */
static void begin_work(struct agent *a)
{
    a->alive_ns = dt_now_ns();
}

static void say_alive_if_due(void *arg)
{
    struct agent *a = arg;
    uint64_t now = dt_now_ns();

    if (now - a->alive_ns < ALIVE_MS * UINT64_C(1000000))
        return;
    a->alive_ns = now;
    say_alive(a);
}

/* --inject host and --inject agent: ends as if the power had failed. */
static void on_vanish(void *arg)
{
    struct agent *a = arg;

    dt_keeper_end_all(a->keeper, LAST_SWEEP_MS);
    dt_keeper_kill(a->keeper);
    kill(getpid(), SIGKILL);
}

static void send_answer(struct agent *a)
{
    struct dt_msg_answer answer = { .id = a->query };

    if (a->generation)
        dt_generation_leaving(a->generation, &answer.leaving);
    uv_timer_stop(&a->query_timer);
    uv_prepare_stop(&a->query_look);
    dt_channel_send(a->host.channel, DT_MSG_ANSWER, &answer);
    free(answer.leaving.v);
}

static void on_query_time(uv_timer_t *timer)
{
    send_answer(timer->data);
}

/* Answers QUERY once every death that other ranks may have noticed has been reported. */
static void on_query_look(uv_prepare_t *look)
{
    struct agent *a = look->data;

    if (!a->generation || !dt_generation_has_unreported_deaths(a->generation))
        send_answer(a);
}

/* As waitid(2), which in glibc does not return the CPU time that the kernel offers. */
static bool reap_one(struct agent *a, siginfo_t *info)
{
    struct rusage used;

    if (syscall(SYS_waitid, P_ALL, 0, info, WEXITED | WNOHANG, &used) != 0 || !info->si_pid)
        return false;
    a->host.reaped_cpu_s = (uint64_t)used.ru_utime.tv_sec + (uint64_t)used.ru_stime.tv_sec;
    return true;
}

/* Reaps every process that has ended, ranks and orphans. */
static void reap(struct agent *a)
{
    siginfo_t info = { 0 };

    begin_work(a);
    while (reap_one(a, &info)) {
        if (a->generation)
            dt_generation_died(a->generation, &info);
        info.si_pid = 0;
        say_alive_if_due(a);
    }
}

static void on_child(uv_signal_t *handle, int signo)
{
    (void)signo;
    reap(handle->data);
}

static void protocol_error(struct agent *a, const char *what)
{
    leave(a, DT_EXIT_LAUNCH, "lost the launcher", what);
}

static bool is_valid_start(const struct dt_msg_start *m)
{
    for (uint32_t i = 0; i < m->ranks.n; i++)
        if (m->ranks.v[i] >= m->np || (i > 0 && m->ranks.v[i] <= m->ranks.v[i - 1]))
            return false;
    return m->argv.n > 0 && m->ranks.n > 0;
}

static void on_start(struct agent *a, struct dt_msg_start *m)
{
    if (has_ranks(a))
        protocol_error(a, "START came while ranks of the previous generation ran");
    if (m->generation <= a->last_generation)
        protocol_error(a, "START came with an old generation");
    if (!is_valid_start(m))
        protocol_error(a, "START is malformed");
    a->last_generation = m->generation;
    dt_jobsignals_forget(a->signals, 0);
    dt_lease_set(&a->lease, m->heartbeat_ms);
    a->keeper->lease_ms = a->lease.ms;
    dt_standby_stop(a->host.standby); /* ranks are about to be forked */
    dt_generation_destroy(a->generation);
    begin_work(a);
    a->generation = dt_generation_create(&a->host, m);
}

static void on_ping(struct agent *a, const struct dt_msg_ping *m)
{
    struct dt_msg_pong pong = { .ping_time_ns = m->time_ns, .time_ns = dt_now_ns() };

    if (has_ranks(a))
        dt_generation_pong(a->generation, &m->comms, &pong);
    dt_channel_send(a->host.channel, DT_MSG_PONG, &pong);
    dt_generation_free_pong(&pong);
}

static void on_query(struct agent *a, const struct dt_msg_query *m)
{
    a->query = m->id;
    uv_timer_start(&a->query_timer, on_query_time, DYING_MS, 0);
    uv_prepare_start(&a->query_look, on_query_look);
    reap(a);
}

static void send_facts(void *arg, struct dt_msg_facts *facts)
{
    struct agent *a = arg;

    dt_channel_send(a->host.channel, DT_MSG_FACTS, facts);
    dt_msg_free(DT_MSG_FACTS, (union dt_msg *)facts);
}

static void on_check(struct agent *a, const struct dt_msg_check *m)
{
    struct dt_msg_facts facts = { .gpu_links = dt_xstrdup("") };

    dt_standby_enter(a->host.standby,
                     "a file system that --check looks at (for checkpoints, NCCL or the system)");
    dt_hostfacts_fill(&facts, "", m->dir);
    dt_gpus_describe(&facts.gpu_models, &facts.gpu_driver, "");
    dt_gpustate_read(&facts, "");
    dt_standby_leave(a->host.standby);
    dt_standby_stop(a->host.standby); /* nvidia-smi is about to be forked */
    uv_update_time(&a->loop);         /* its time limit starts now */
    dt_gpuask_begin(&a->loop, facts, &a->keeper->groups, send_facts, a);
}

static void on_job_signal(void *arg, int signo)
{
    struct agent *a = arg;
    const struct dt_msg_signalled m = { signo };

    if (a->generation && signo == SIGTERM)
        dt_generation_expect_stop(a->generation);
    dt_channel_send(a->host.channel, DT_MSG_SIGNALLED, &m);
}

static void on_signal(struct agent *a, int signo)
{
    bool ranks_had = dt_jobsignals_ranks_had(a->signals, signo); /* the batch system has sent it */

    dt_jobsignals_forget(a->signals, signo);
    if (ranks_had && (signo == SIGUSR1 || signo == SIGUSR2))
        return;
    if (ranks_had)
        signo = SIGCONT; /* a stopped rank handles that signal when it continues */
    /* On Ctrl-Z, dtrun stops the ranks before it stops itself. */
    if (signo == SIGSTOP || signo == SIGCONT)
        dt_lease_hold(&a->lease, signo == SIGSTOP);
    if (a->generation && signo > 0 && signo < NSIG)
        dt_generation_signal(a->generation, signo);
}

/* Handles a message that concerns ranks; without ranks, drops it. Returns false for any other
 * message. */
static bool for_generation(struct agent *a, uint8_t type, union dt_msg *msg)
{
    struct dt_generation *g = a->generation;

    switch (type) {
    case DT_MSG_GO:
        if (g)
            dt_generation_go(g, &msg->go);
        return true;
    case DT_MSG_TABLE:
        if (g)
            dt_generation_table(g, &msg->table);
        return true;
    case DT_MSG_STOP:
        reap(a); /* first: this message did not stop processes that have already ended */
        if (g)
            dt_generation_stop(g, msg->stop.grace_ms, dt_jobsignals_ranks_had(a->signals, SIGTERM));
        return true;
    case DT_MSG_ABORT:
        reap(a);
        if (g)
            dt_generation_abort(g, &msg->abort);
        return true;
    case DT_MSG_CREDIT:
        if (g)
            dt_generation_credit(g, &msg->credit);
        return true;
    case DT_MSG_STDIN:
        if (g && !dt_generation_stdin(g, &msg->stdin))
            protocol_error(a, "more standard input came than was asked for");
        return true;
    case DT_MSG_FENCED:
        if (g && !dt_generation_fenced(g, &msg->fenced))
            protocol_error(a, "FENCED is malformed");
        return true;
    case DT_MSG_SHARE:
        if (g)
            dt_generation_share(g, &msg->share);
        return true;
    case DT_MSG_STDIN_EOF:
        if (g)
            dt_generation_stdin_eof(g, &msg->stdin_eof);
        return true;
    default:
        return false;
    }
}

static void on_launcher_message(void *arg, uint8_t type, union dt_msg *msg)
{
    struct agent *a = arg;

    if (for_generation(a, type, msg))
        return;
    switch (type) {
    case DT_MSG_START:
        on_start(a, &msg->start);
        break;
    case DT_MSG_SIGNAL:
        on_signal(a, msg->signal.signo);
        break;
    case DT_MSG_PING:
        on_ping(a, &msg->ping);
        break;
    case DT_MSG_QUERY:
        on_query(a, &msg->query);
        break;
    case DT_MSG_CHECK:
        on_check(a, &msg->check);
        break;
    case DT_MSG_PROBE:
        dt_probe_begin(a->probe, a->host.channel, &msg->probe);
        break;
    case DT_MSG_FILE:
        dt_files_begin(a->files, &msg->file);
        break;
    case DT_MSG_FILE_DATA:
        dt_files_data(a->files, &msg->file_data);
        /* PINGs wait behind the files in the buffers of TCP and SSH: long on a slow line. */
        say_alive_if_due(a);
        break;
    case DT_MSG_END:
        leave(a, 0, NULL, NULL);
    default:
        protocol_error(a, "a message came that only agents send");
    }
}

static void on_heard(void *arg)
{
    struct agent *a = arg;

    dt_lease_renew(&a->lease);
}

static void on_room(void *arg)
{
    struct agent *a = arg;

    if (a->generation)
        dt_generation_room(a->generation);
}

/* Each rank takes a few descriptors. The limit of a file's size also applies to pushed files and to
 * the ranks' shared memory. The ranks get the original limits back. */
static void raise_limit(int resource, struct rlimit *before)
{
    struct rlimit limit;

    getrlimit(resource, before);
    limit = *before;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(resource, &limit);
}

static void say_hello(struct agent *a)
{
    struct dt_msg_hello hello = { .probe_port = a->probe_port };

    dt_hostinfo_fill(&hello, getppid());
    dt_netaddrs_list(&hello.addrs);
    hello.gpus = a->host.gpus;
    a->host.cores = hello.cores;
    a->host.free_port = hello.free_port;
    dt_channel_send(a->host.channel, DT_MSG_HELLO, &hello);
    hello.gpus = (struct dt_strs){ 0 };
    dt_msg_free(DT_MSG_HELLO, (union dt_msg *)&hello);
}

static int open_agent(struct agent *a, bool alone, struct dt_error *err)
{
    static const struct dt_channel_events events = {
        .heard = on_heard, .message = on_launcher_message, .room = on_room, .gone = on_gone
    };
    int rc = dt_uvloop_init(&a->loop);

    if (rc < 0)
        return dt_error_set(err, "cannot create an event loop: %s", uv_strerror(rc));
    raise_limit(RLIMIT_NOFILE, &a->host.files_limit);
    raise_limit(RLIMIT_FSIZE, &a->host.file_size_limit);
    dt_oom_init(&a->host.oom);
    dt_gpus_detect(&a->host.gpus, "", &a->keeper->groups);
    a->host.loop = &a->loop;
    a->host.cgroup = a->keeper->cgroup;
    a->host.groups = &a->keeper->groups;
    a->host.mpi_dir = a->keeper->mpi_dir;
    a->host.alive = say_alive_if_due;
    a->host.vanish = on_vanish;
    a->host.arg = a;
    a->child_signal.data = a->keeper_poll.data = a->query_timer.data = a->query_look.data = a;
    uv_timer_init(&a->loop, &a->query_timer);
    uv_prepare_init(&a->loop, &a->query_look);
    a->probe = dt_probe_create(&a->loop, alone ? NULL : &a->probe_port);
    uv_signal_init(&a->loop, &a->child_signal);
    uv_signal_start(&a->child_signal, on_child, SIGCHLD);
    uv_poll_init(&a->loop, &a->keeper_poll, a->keeper_fd);
    uv_poll_start(&a->keeper_poll, UV_READABLE, on_keeper);
    a->lease.keeper_heard_ns = &a->keeper->launcher_heard_ns;
    a->lease.tick = on_lease_tick;
    a->lease.doubt = on_doubt;
    a->lease.expired = on_lease_expired;
    a->lease.arg = a;
    dt_lease_start(&a->lease, &a->loop, a->keeper->lease_ms);
    a->host.channel = dt_channel_open(&a->loop, STDIN_FILENO, STDOUT_FILENO, &events, a, err);
    if (!a->host.channel)
        return -1;
    a->signals = dt_jobsignals_open(&a->loop, on_job_signal, a, err);
    return a->signals ? 0 : -1;
}

int dt_agent_work(struct dt_keeper *keeper, int keeper_fd, bool alone)
{
    static struct agent a;
    struct dt_error err = { 0 };

    a.keeper = keeper;
    a.keeper_fd = keeper_fd;
    if (open_agent(&a, alone, &err) < 0) {
        fprintf(stderr, "dtrun-agent: %s\n", err.text);
        return DT_EXIT_LAUNCH;
    }
    a.host.standby = dt_standby_create(on_blocked, &a);
    a.files = dt_files_create(a.host.channel, keeper, a.host.standby);
    say_hello(&a);
    uv_run(&a.loop, UV_RUN_DEFAULT);
    return DT_EXIT_LAUNCH; /* not reached, because the loop always waits for the channel */
}
