#include "tests/unit/testjob.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "launcher/agent/ranklink/callwatch.h"
#include "launcher/agent/ranklink/ranksock.h"
#include "runtime/dtrun.h"
#include "runtime/wire/env.h"
#include "tests/unit/unit.h"

enum { GENERATION = 3, TICK_MS = 5, PATIENCE_MS = 300 * 1000, KEPT_BYTES = 32 * 1024 * 1024 };

struct host {
    struct testjob *job;
    struct dt_msg_start start;
    struct dt_ranksock *sock;
    uint32_t ranks[TESTJOB_RANKS];
    char name[24];
    char label[256]; /* "host0" and the domain */
};

struct testjob {
    const struct testjob_plan *plan;
    struct testjob_result *result;
    uv_loop_t loop;
    uv_signal_t child;
    uv_timer_t tick, patience;
    int ticks;
    struct host hosts[TESTJOB_HOSTS];
    int n_hosts;
    int home[TESTJOB_RANKS]; /* by rank */
    uint16_t ports[TESTJOB_RANKS];
    int hellos;
    int running;
    bool late;
};

void testjob_streams(unsigned n)
{
    static int fd = -1;
    char path[64];

    if (fd >= 0)
        close(fd);
    fd = -1;
    setenv(DT_ENV_TUNING, "", 1);
    if (n == 0)
        return;
    fd = memfd_create("streams", MFD_CLOEXEC);
    if (fd < 0 || dprintf(fd, "net_streams = %u\n", n) < 0)
        abort();
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(),
             fd); /* ranks have different descriptors */
    setenv(DT_ENV_TUNING, path, 1);
}

int64_t testjob_now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

void *testjob_shared(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        abort();
    return p;
}

void testjob_meet(_Atomic int *here, int ranks)
{
    ++*here;
    while (*here < ranks)
        usleep(500);
}

static struct host *host_of(struct testjob *job, int rank)
{
    return &job->hosts[job->home[rank]];
}

static uint32_t local_of(struct testjob *job, int rank)
{
    return (uint32_t)dt_u32s_find(&host_of(job, rank)->start.ranks, (uint32_t)rank);
}

void *testjob_arg(struct testjob *job)
{
    return job->plan->arg;
}

void testjob_kill(struct testjob *job, int rank, int signo)
{
    if (job->result->ranks[rank].pid > 0)
        kill(job->result->ranks[rank].pid, signo);
}

void testjob_go(struct testjob *job, int rank, int exit_code)
{
    dt_ranksock_go(host_of(job, rank)->sock, local_of(job, rank), exit_code);
}

void testjob_watch_step(struct testjob *job, int rank, int64_t step)
{
    dt_ranksock_watch_step(host_of(job, rank)->sock, local_of(job, rank), step);
}

uint64_t testjob_call(struct testjob *job, int rank)
{
    const struct dt_msg_list none = { 0 };
    const struct dt_msg_comm *world;
    struct dt_msg_pong pong = { 0 };
    uint64_t call;

    dt_ranksock_look(host_of(job, rank)->sock, &none, &pong);
    world = pong.comms.v;
    call = ((struct dt_msg_called *)world->ranks.v)[local_of(job, rank)].call;
    dt_callwatch_free_report(&pong.comms);
    return call;
}

void testjob_table(struct testjob *job)
{
    struct dt_msg_addr addrs[TESTJOB_RANKS];
    char *names[TESTJOB_HOSTS];
    struct dt_msg_table table = { GENERATION,
                                  { addrs, (uint32_t)job->result->n },
                                  { names, (uint32_t)job->n_hosts } };

    for (int i = 0; i < job->result->n; i++)
        addrs[i] = (struct dt_msg_addr){ host_of(job, i)->start.host, job->ports[i],
                                         host_of(job, i)->start.node_rank };
    for (int i = 0; i < job->n_hosts; i++)
        names[i] = job->hosts[i].label;
    for (int i = 0; i < job->n_hosts; i++)
        dt_ranksock_table(job->hosts[i].sock, &table);
}

static bool has_room(void *arg)
{
    (void)arg;
    return true;
}

static void saw_last_calls(struct testjob_result *result, const struct dt_msg_last_calls *m)
{
    const struct dt_msg_last_call *calls = m->calls.v;
    char *text = result->last_calls;
    size_t n = strlen(text), room = sizeof result->last_calls;

    n += (size_t)snprintf(text + n, room - n, "rank %u, comm %llx, code %d, %s%s:", m->rank,
                          (unsigned long long)m->comm, m->code, m->dump, m->dump_error);
    for (uint32_t i = 0; i < m->calls.n && n < room; i++)
        n += (size_t)snprintf(text + n, room - n, " %llu %s: %s, %s;",
                              (unsigned long long)calls[i].call, calls[i].what, calls[i].result,
                              calls[i].algorithm);
    if (n < room)
        snprintf(text + n, room - n, "\n");
}

static void saw_hello(struct testjob *job, const struct dt_msg_rank_hello *m)
{
    job->ports[m->rank] = m->port;
    job->hellos++;
    if (job->plan->on_hello)
        job->plan->on_hello(job, (int)m->rank, m->port);
    if (job->hellos == job->result->n && !job->plan->hold_table)
        testjob_table(job);
}

static void saw_log(struct testjob_result *result, const char *text)
{
    size_t n = strlen(result->log);

    snprintf(result->log + n, sizeof result->log - n, "%s\n", text);
}

static void saw_failed(struct testjob *job, const struct dt_msg_failed *m)
{
    for (int i = 0; i < job->n_hosts; i++)
        dt_ranksock_abort(job->hosts[i].sock, m->comm, m->code, m->rank, m->text);
}

static void saw_message(void *arg, uint8_t type, const void *msg)
{
    struct testjob *job = ((struct host *)arg)->job;
    const union dt_msg *m = msg;

    if (type == DT_MSG_RANK_HELLO)
        saw_hello(job, msg);
    else if (type == DT_MSG_COMMIT && job->plan->on_commit)
        job->plan->on_commit(job, m->commit.step, m->commit.kind != DT_COMMITTED);
    else if (type == DT_MSG_LOG)
        saw_log(job->result, m->log.text);
    else if (type == DT_MSG_FAILED)
        saw_failed(job, msg);
    else if (type == DT_MSG_LAST_CALLS)
        saw_last_calls(job->result, msg);
}

static void saw_step(void *arg, uint32_t local_rank, int64_t step)
{
    const struct host *h = arg;

    if (h->job->plan->on_step)
        h->job->plan->on_step(h->job, (int)h->ranks[local_rank], step);
}

/* Does what an agent and the launcher do: a linked rank that died without dt_finalize ends the
 * generation. */
static void ended(struct testjob *job, int rank, int status)
{
    struct testjob_rank *r = &job->result->ranks[rank];
    struct dt_ranksock *sock = host_of(job, rank)->sock;
    struct dt_rank_state state;

    dt_ranksock_drain(sock, local_of(job, rank));
    state = dt_ranksock_state(sock, local_of(job, rank));
    *r = (struct testjob_rank){
        .pid = -1,
        .status = status,
        .linked = state.linked,
        .finalized = state.finalized,
        .peer_lost = state.peer_lost,
        .step = state.step,
    };
    job->running--;
    for (int i = 0; !state.finalized && i < job->n_hosts; i++) {
        dt_ranksock_ended(job->hosts[i].sock, (uint32_t)rank,
                          dt_hostshm_ending_of(WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                                               WIFSIGNALED(status) ? WTERMSIG(status) : 0));
        dt_ranksock_abort(job->hosts[i].sock, 0, DT_ERR_PEER, (uint32_t)rank, "");
    }
    if (job->running == 0)
        uv_stop(&job->loop);
}

static void on_child(uv_signal_t *handle, int signo)
{
    struct testjob *job = handle->data;

    (void)signo;
    for (int i = 0; i < job->result->n; i++) {
        pid_t pid = job->result->ranks[i].pid;
        int status;

        if (pid > 0 && waitpid(pid, &status, WNOHANG) == pid)
            ended(job, i, status);
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct testjob *job = timer->data;

    job->plan->on_tick(job, ++job->ticks * TICK_MS);
}

static void on_patience_end(uv_timer_t *timer)
{
    struct testjob *job = timer->data;

    job->late = true;
    for (int i = 0; i < job->result->n; i++)
        testjob_kill(job, i, SIGKILL);
}

static void set_number(const char *name, unsigned value)
{
    char text[16];

    snprintf(text, sizeof text, "%u", value);
    setenv(name, text, 1);
}

/* Large buffers that a rank allocates again and again keep their pages. */
static void keep_freed_memory(void)
{
    mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
}

/* In the child: sets up what a rank of an agent would find. */
static void become_rank(struct host *h, uint32_t local)
{
    int fd = dt_ranksock_child_fd(h->sock, local);

    signal(SIGCHLD, SIG_DFL);
    keep_freed_memory();
    fd = fcntl(fd, F_DUPFD, 1000);
    syscall(SYS_close_range, 3, fd - 1, 0);
    syscall(SYS_close_range, fd + 1, ~0U, 0);
    set_number(DT_ENV_AGENT_FD, (unsigned)fd);
    set_number(DT_ENV_RANK, h->ranks[local]);
    set_number(DT_ENV_SIZE, h->start.np);
    set_number(DT_ENV_LOCAL_RANK, local);
    set_number(DT_ENV_LOCAL_SIZE, h->start.ranks.n);
    set_number(DT_ENV_NODE_RANK, h->start.node_rank);
    set_number(DT_ENV_NODES, h->start.nodes);
    set_number(DT_ENV_GENERATION, GENERATION);
}

#ifdef __SANITIZE_ADDRESS__
#include <dlfcn.h>
#include <link.h>
#include <sanitizer/lsan_interface.h>

typedef int look_f(struct dl_phdr_info *module, size_t size, void *arg);

struct look {
    look_f *at;
    void *arg;
};

static bool searching;

static int look_elsewhere(struct dl_phdr_info *module, size_t size, void *arg)
{
    const struct look *look = arg;
    bool is_sanitizer =
        strstr(module->dlpi_name, "/libasan.") || strstr(module->dlpi_name, "/libubsan.");

    return is_sanitizer ? 0 : look->at(module, size, look->arg);
}

/* A search for leaks reads the variables of all modules that it is shown here. Those of the
 * sanitizers are 11 MB, which every rank would read. */
__attribute__((visibility("default"), no_sanitize("address", "undefined"))) int
dl_iterate_phdr(look_f *at, void *arg)
{
    static int (*next)(look_f *, void *);

    if (!next)
        next = (int (*)(look_f *, void *))dlsym(RTLD_NEXT, "dl_iterate_phdr");
    return searching ? next(look_elsewhere, &(struct look){ at, arg }) : next(at, arg);
}

static int leaks(void)
{
    int found;

    searching = true;
    found = __lsan_do_recoverable_leak_check();
    searching = false;
    return found;
}
#else
static int leaks(void)
{
    return 0;
}
#endif

/* A rank ends without the exit handlers that this process has registered, but it must not leak. */
static _Noreturn void end_rank(int code)
{
    _exit(code ? code : leaks() ? 99 : 0);
}

static void fork_rank(struct testjob *job, struct host *h, uint32_t local)
{
    int rank = (int)(h->ranks[local]);
    pid_t pid = fork();

    if (pid == 0) {
        become_rank(h, local);
        end_rank(job->plan->body(rank, job->plan->arg));
    }
    job->result->ranks[rank].pid = pid;
    job->running++;
    dt_ranksock_forked(h->sock, local);
}

int testjob_place(const char *hosts, int home[TESTJOB_RANKS])
{
    int n = 0;
    char *end;

    if (*hosts == '@') {
        while (hosts[n + 1])
            home[n] = hosts[n + 1] - '0', n++;
        return n;
    }
    for (int host = 0; *hosts; host++, hosts = end)
        for (unsigned long k = strtoul(hosts, &end, 10); k; k--)
            home[n++] = host;
    return n;
}

static void place(struct testjob *job)
{
    job->result->n = testjob_place(job->plan->hosts, job->home);
    for (int rank = 0; rank < job->result->n; rank++) {
        struct host *h = &job->hosts[job->home[rank]];

        h->ranks[h->start.ranks.n++] = (uint32_t)rank;
        job->n_hosts = job->home[rank] >= job->n_hosts ? job->home[rank] + 1 : job->n_hosts;
    }
    for (int i = 0; i < job->n_hosts; i++) {
        struct host *h = &job->hosts[i];

        h->job = job;
        snprintf(h->name, sizeof h->name, "127.0.0.%u", (unsigned char)(2 + i));
        snprintf(h->label, sizeof h->label, "host%d%s", i,
                 job->plan->domain ? job->plan->domain : "");
        h->start.host = h->name;
        h->start.generation = GENERATION;
        h->start.node_rank = (uint32_t)i;
        h->start.ranks.v = h->ranks;
        memset(h->start.secret, 0x5e, sizeof h->start.secret);
    }
}

static void start_hosts(struct testjob *job)
{
    const struct dt_ranksock_events events = { saw_message, saw_step, has_room };
    struct dt_error err = { 0 };

    for (int i = 0; i < job->n_hosts; i++) {
        struct host *h = &job->hosts[i];

        h->start.np = (uint32_t)job->result->n;
        h->start.nodes = (uint32_t)job->n_hosts;
        h->sock = dt_ranksock_create(&job->loop, &h->start, &events, h, &err);
        if (!h->sock) {
            fprintf(stderr, "testjob: %s\n", err.text);
            abort();
        }
    }
    for (int i = 0; i < job->n_hosts; i++) {
        for (uint32_t k = 0; k < job->hosts[i].start.ranks.n; k++)
            fork_rank(job, &job->hosts[i], k);
    }
}

/* A search for leaks reads all variables, megabytes that are mostly untouched. When this process
 * has read them once, ranks inherit its page table and cause no page faults. */
static void touch_what_leak_searches_read(void)
{
    static bool touched;

    if (!touched)
        leaks();
    touched = true;
}

int testjob_run(const struct testjob_plan *plan, struct testjob_result *result)
{
    struct testjob job = { .plan = plan, .result = result };

    touch_what_leak_searches_read();
    setenv(DT_ENV_TUNING, "", 0); /* this machine's own thresholds do not matter */
    memset(result, 0, sizeof *result);
    place(&job);
    uv_loop_init(&job.loop);
    uv_signal_init(&job.loop, &job.child);
    uv_timer_init(&job.loop, &job.tick);
    uv_timer_init(&job.loop, &job.patience);
    job.child.data = job.tick.data = job.patience.data = &job;
    uv_signal_start(&job.child, on_child, SIGCHLD);
    uv_timer_start(&job.patience, on_patience_end, PATIENCE_MS, 0);
    if (plan->on_tick)
        uv_timer_start(&job.tick, on_tick, TICK_MS, TICK_MS);
    start_hosts(&job);
    uv_run(&job.loop, UV_RUN_DEFAULT);
    for (int i = 0; i < job.n_hosts; i++)
        dt_ranksock_destroy(job.hosts[i].sock);
    uv_close((uv_handle_t *)&job.child, NULL);
    uv_close((uv_handle_t *)&job.tick, NULL);
    uv_close((uv_handle_t *)&job.patience, NULL);
    uv_run(&job.loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&job.loop) != 0)
        abort();
    return job.late ? -1 : 0;
}

int testjob_pass(const struct testjob_plan *plan)
{
    struct testjob_result result;
    bool in_time = testjob_run(plan, &result) == 0, passed = in_time && !*result.log;

    if (!passed)
        fprintf(stderr, "hosts %s: %s\n", plan->hosts, in_time ? result.log : "somebody hangs");
    for (int i = 0; i < result.n; i++) {
        if (result.ranks[i].status == 0)
            continue;
        fprintf(stderr, "hosts %s: rank %d ended with wait status %#x\n", plan->hosts, i,
                (unsigned)result.ranks[i].status);
        passed = false;
    }
    return passed ? 0 : -1;
}

void testjob_must_pass(const char *hosts, int (*body)(int rank, void *arg), const void *arg)
{
    const struct testjob_plan plan = { .hosts = hosts,
                                       .body = body,
                                       .arg = (void *)(uintptr_t)arg };

    assert_int_equal(testjob_pass(&plan), 0);
}

int testjob_pass_all(const char *const *placements, int (*body)(int rank, void *arg))
{
    int r = 0;

    for (; r == 0 && *placements; placements++)
        r = testjob_pass(&(struct testjob_plan){ .hosts = *placements, .body = body });
    return r;
}
