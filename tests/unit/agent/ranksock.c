/* The agent's side of the rank socket, driven by a rank in the same process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/agent/ranklink/callwatch.h"
#include "launcher/agent/ranklink/ranksock.h"
#include "runtime/wire/hostshm.h"
#include "runtime/wire/rankmsg.h"
#include "runtime/wire/sealed.h"
#include "tests/unit/checks.h"
#include "tests/unit/forbid.h"

enum { RANKS = 2, FIRST = 3, SECOND = 5, GENERATION = 7 };
enum { SIZE = 4 }; /* of a communicator, on this host and others */

/* What gVisor does and Linux does not. */
static struct {
    bool on;
    pid_t sender; /* a thread's ID, or 0 for one that has ended */
    int reset;    /* a socket whose error was reported once, or -1 */
} gvisor = { .reset = -1 };

static void set_sender(struct msghdr *h, size_t room, pid_t pid)
{
    const struct ucred cred = { .pid = pid, .uid = 65534, .gid = 65534 };

    h->msg_controllen = room;
    *CMSG_FIRSTHDR(h) = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof cred),
                                          .cmsg_level = SOL_SOCKET,
                                          .cmsg_type = SCM_CREDENTIALS };
    memcpy(CMSG_DATA(CMSG_FIRSTHDR(h)), &cred, sizeof cred);
    h->msg_controllen = CMSG_SPACE(sizeof cred);
}

/* Takes the place of the C library's. */
ssize_t recvmsg(int fd, struct msghdr *h, int flags)
{
    size_t room = h->msg_controllen;
    ssize_t n;

    errno = ECONNRESET;
    n = gvisor.on && fd == gvisor.reset ? -1 : syscall(SYS_recvmsg, fd, h, flags);
    if (gvisor.on && n >= 0)
        set_sender(h, room, n == 0 ? 0 : gvisor.sender);
    else if (n < 0 && errno == ECONNRESET)
        gvisor.reset = fd;
    return n;
}

struct fixture {
    uv_loop_t loop;
    struct dt_msg_start start;
    struct dt_ranksock *sock;
    char seen[1024];   /* one word per event */
    uint32_t limit_ms; /* which the last look reported */
    bool full;         /* the launcher does not take what ranks send */
};

static void saw_last_calls(char *to, const struct dt_msg_last_calls *m)
{
    const struct dt_msg_last_call *call = m->calls.v;

    snprintf(to, 300, "last_calls(%u,%u,%llx,%d)[%s][%s] %u %s %s ", m->generation, m->rank,
             (unsigned long long)m->comm, m->code, m->dump, m->dump_error, m->calls.n, call->what,
             call->result);
}

static void saw_message(void *arg, uint8_t type, const void *msg)
{
    const union dt_msg *m = msg;
    struct fixture *f = arg;
    char *to = f->seen + strlen(f->seen);

    switch (type) {
    case DT_MSG_RANK_HELLO:
        snprintf(to, 100, "hello(%u,%u) ", m->rank_hello.rank, m->rank_hello.port);
        break;
    case DT_MSG_COMMIT:
        snprintf(to, 100, "commit(%lld,%d) ", (long long)m->commit.step, m->commit.kind);
        break;
    case DT_MSG_LOG:
        snprintf(to, 200, "%s[%s] ", m->log.detail ? "detail" : "log", m->log.text);
        break;
    case DT_MSG_FAILED:
        snprintf(to, 200, "failed(%llx,%u,%d)[%s] ", (unsigned long long)m->failed.comm,
                 m->failed.rank, m->failed.code, m->failed.text);
        break;
    case DT_MSG_LIMIT:
        snprintf(to, 100, "limit(%u) ", m->limit.ms);
        break;
    default:
        assert_int_equal(type, DT_MSG_LAST_CALLS);
        saw_last_calls(to, msg);
    }
}

static void saw_step(void *arg, uint32_t local_rank, int64_t step)
{
    struct fixture *f = arg;

    snprintf(f->seen + strlen(f->seen), 100, "step(%u,%lld) ", local_rank, (long long)step);
}

static bool has_room(void *arg)
{
    const struct fixture *f = arg;

    return !f->full;
}

static int setup(void **state)
{
    static struct fixture fixture;
    struct fixture *f = &fixture;
    const struct dt_ranksock_events events = { saw_message, saw_step, has_room };
    static uint32_t ranks[RANKS];
    struct dt_error err = { 0 };

    ranks[0] = FIRST;
    ranks[1] = SECOND;
    memset(f, 0, sizeof *f);
    uv_loop_init(&f->loop);
    f->start.generation = GENERATION;
    f->start.np = 6;
    f->start.nodes = 3;
    f->start.node_rank = 1;
    f->start.ranks = (struct dt_u32s){ ranks, RANKS };
    f->start.host = (char *)"host2";
    memset(f->start.secret, 0x5a, sizeof f->start.secret);
    f->sock = dt_ranksock_create(&f->loop, &f->start, &events, f, &err);
    *state = f;
    return f->sock ? 0 : -1;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    gvisor.on = false;
    gvisor.reset = -1;
    dt_ranksock_destroy(f->sock);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    return uv_loop_close(&f->loop);
}

static void run_loop_once(struct fixture *f)
{
    uv_run(&f->loop, UV_RUN_NOWAIT);
}

/* Sends a message of a rank, and lets the agent read it. */
static void tell(struct fixture *f, uint32_t local_rank, const struct dt_rankmsg *m)
{
    assert_int_equal(dt_rankmsg_send(dt_ranksock_child_fd(f->sock, local_rank), m, -1, 0), 0);
    run_loop_once(f);
}

static void hello(struct fixture *f, uint32_t local_rank, uint32_t protocol, uint32_t rank)
{
    struct dt_rankmsg m = { .type = DT_RANK_HELLO };

    m.hello.protocol = protocol;
    m.hello.rank = rank;
    m.hello.generation = GENERATION;
    m.hello.port = (uint16_t)(9000 + rank);
    tell(f, local_rank, &m);
}

static struct dt_rankmsg receive(struct fixture *f, uint32_t local_rank, int *fd)
{
    struct dt_rankmsg m;
    struct dt_rankmsg_from from;

    assert_int_equal(
        dt_rankmsg_recv(dt_ranksock_child_fd(f->sock, local_rank), &m, &from, MSG_DONTWAIT), 1);
    if (fd)
        *fd = from.fd;
    else if (from.fd >= 0)
        close(from.fd);
    return m;
}

/* Makes a rank begin. */
static void welcome(struct fixture *f, uint32_t local_rank)
{
    hello(f, local_rank, DT_RANK_PROTOCOL, f->start.ranks.v[local_rank]);
    assert_int_equal(receive(f, local_rank, NULL).type, DT_RANK_WELCOME);
}

/* The same; it has the job's memory then. */
static void begin_rank(struct fixture *f, uint32_t local_rank, struct dt_hostshm *shm)
{
    int fd = -1;

    hello(f, local_rank, DT_RANK_PROTOCOL, f->start.ranks.v[local_rank]);
    receive(f, local_rank, &fd);
    assert_int_equal(dt_hostshm_map(shm, fd, GENERATION, RANKS, 0), 0);
    close(fd);
}

static void expect_no_message(struct fixture *f, uint32_t local_rank)
{
    struct dt_rankmsg m;
    struct dt_rankmsg_from from;

    assert_int_equal(
        dt_rankmsg_recv(dt_ranksock_child_fd(f->sock, local_rank), &m, &from, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
}

static void a_rank_is_welcomed_with_shared_memory(void **state)
{
    struct fixture *f = *state;
    struct dt_hostshm shm;
    struct dt_rankmsg m;
    int fd = -1;

    assert_false(dt_ranksock_state(f->sock, 1).linked);
    hello(f, 1, DT_RANK_PROTOCOL, SECOND);
    assert_string_equal(f->seen, "hello(5,9005) ");
    m = receive(f, 1, &fd);
    assert_int_equal(m.type, DT_RANK_WELCOME);
    assert_int_equal(m.welcome.rank, SECOND);
    assert_int_equal(m.welcome.size, 6);
    assert_int_equal(m.welcome.local_rank, 1);
    assert_int_equal(m.welcome.local_size, RANKS);
    assert_int_equal(m.welcome.node_rank, 1);
    assert_int_equal(m.welcome.nodes, 3);
    assert_memory_equal(m.welcome.secret, f->start.secret, DT_SECRET_BYTES);
    assert_int_equal(dt_hostshm_map(&shm, fd, GENERATION + 1, RANKS, 0), -1);
    assert_int_equal(dt_hostshm_map(&shm, fd, GENERATION, RANKS + 1, 0), -1);
    assert_int_equal(dt_hostshm_map(&shm, fd, GENERATION, RANKS, 0), 0);
    assert_int_equal(ftruncate(fd, 0), -1);
    close(fd);
    atomic_store(&shm.ranks[1].step, 42);
    atomic_store(&shm.ranks[1].flags, DT_HOSTSHM_FINALIZED);
    assert_true(dt_ranksock_state(f->sock, 1).linked);
    assert_true(dt_ranksock_state(f->sock, 1).finalized);
    assert_false(dt_ranksock_state(f->sock, 1).peer_lost);
    assert_false(dt_ranksock_state(f->sock, 1).failed);
    atomic_store(&shm.ranks[1].failed, 1);
    assert_true(dt_ranksock_state(f->sock, 1).failed);
    assert_int_equal(dt_ranksock_state(f->sock, 1).step, 42);
    assert_int_equal(dt_ranksock_state(f->sock, 0).step, -1);
    dt_hostshm_unmap(&shm);
}

static void wrong_hellos_are_refused(void **state)
{
    struct fixture *f = *state;
    struct dt_rankmsg m;
    char both[80];

    snprintf(both, sizeof both,
             "process %d of this rank called dt_init and was refused: process %d ", (int)getpid(),
             (int)getpid());
    hello(f, 0, DT_RANK_PROTOCOL + 1, FIRST);
    m = receive(f, 0, NULL);
    assert_int_equal(m.type, DT_RANK_REFUSED);
    assert_int_equal(m.refused.version, 1);
    hello(f, 0, DT_RANK_PROTOCOL, SECOND);
    m = receive(f, 0, NULL);
    assert_int_equal(m.type, DT_RANK_REFUSED);
    assert_non_null(strstr(m.refused.text, "DTRUN_RANK"));
    assert_false(dt_ranksock_state(f->sock, 0).linked);
    assert_string_equal(f->seen, "");
    hello(f, 0, DT_RANK_PROTOCOL, FIRST);
    assert_int_equal(receive(f, 0, NULL).type, DT_RANK_WELCOME);
    hello(f, 0, DT_RANK_PROTOCOL, FIRST);
    m = receive(f, 0, NULL);
    assert_int_equal(m.type, DT_RANK_REFUSED);
    assert_non_null(strstr(m.refused.text, "already"));
    assert_non_null(strstr(f->seen, both));
    expect_no_message(f, 0);
}

static void garbage_is_ignored(void **state)
{
    struct fixture *f = *state;
    int fd = dt_ranksock_child_fd(f->sock, 0);

    assert_int_equal(send(fd, "garbage", 7, 0), 7);
    run_loop_once(f);
    assert_non_null(strstr(f->seen, "not a message"));
    f->seen[0] = '\0';
    assert_int_equal(send(fd, "", 0, 0), 0); /* reads like the end of the stream */
    run_loop_once(f);
    hello(f, 0, DT_RANK_PROTOCOL, FIRST);
    assert_string_equal(f->seen, "hello(3,9003) ");
}

static void another_process_is_not_the_rank(void **state)
{
    struct fixture *f = *state;
    struct dt_rankmsg m = { .type = DT_RANK_COMMIT };
    int status;

    hello(f, 0, DT_RANK_PROTOCOL, FIRST);
    f->seen[0] = '\0';
    pid_t pid = fork();
    if (pid == 0)
        _exit(dt_rankmsg_send(dt_ranksock_child_fd(f->sock, 0), &m, -1, 0) == 0 ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    run_loop_once(f);
    assert_non_null(strstr(f->seen, "not the rank's own"));
    assert_null(strstr(f->seen, "commit"));
}

static void *send_commit(void *arg)
{
    const struct dt_rankmsg m = { .type = DT_RANK_COMMIT, .commit = { 12, 1 } };
    struct fixture *f = arg;

    gvisor.sender = gettid();
    tell(f, 0, &m);
    return NULL;
}

static void a_thread_is_the_rank_even_if_it_has_ended(void **state)
{
    struct fixture *f = *state;
    pthread_t thread;

    f->start.ranks.v[0] = 0; /* the rank that commits */
    gvisor.on = true;
    gvisor.sender = getpid();
    hello(f, 0, DT_RANK_PROTOCOL, 0);
    f->seen[0] = '\0';
    assert_int_equal(pthread_create(&thread, NULL, send_commit, f), 0);
    pthread_join(thread, NULL);
    gvisor.sender = 0;
    assert_int_equal(dt_rankmsg_send(dt_ranksock_child_fd(f->sock, 0),
                                     &(struct dt_rankmsg){ .type = DT_RANK_COMMIT }, -1, 0),
                     0);
    run_loop_once(f);
    assert_string_equal(f->seen, "commit(12,1) commit(0,0) ");
}

static void nobody_sends_the_end(void **state)
{
    struct fixture *f = *state;

    gvisor.on = true;
    dt_ranksock_forked(f->sock, 0);
    run_loop_once(f);
    assert_string_equal(f->seen, "");
}

static void the_table_reaches_early_and_late_ranks(void **state)
{
    struct fixture *f = *state;
    struct dt_msg_addr addrs[] = { { (char *)"10.0.0.1", 0, 0 }, { (char *)"10.0.0.2", 77, 1 } };
    struct dt_msg_table table = { GENERATION, { addrs, 2 }, { 0 } };
    union dt_msg got;
    uint8_t bytes[256];
    int fd = -1;

    hello(f, 0, DT_RANK_PROTOCOL, FIRST);
    dt_ranksock_table(f->sock, &table);
    hello(f, 1, DT_RANK_PROTOCOL, SECOND);
    for (uint32_t i = 0; i < RANKS; i++) {
        assert_int_equal(receive(f, i, NULL).type, DT_RANK_WELCOME);
        struct dt_rankmsg m = receive(f, i, &fd);
        assert_int_equal(m.type, DT_RANK_TABLE);
        assert_in_range(m.table.bytes, 1, sizeof bytes);
        assert_int_equal(pread(fd, bytes, sizeof bytes, 0), m.table.bytes);
        assert_int_equal(pwrite(fd, bytes, 1, 0), -1);
        assert_int_equal(dt_msg_decode(DT_MSG_TABLE, bytes, m.table.bytes, &got), 0);
        assert_int_equal(got.table.addrs.n, 2);
        assert_int_equal(((struct dt_msg_addr *)got.table.addrs.v)[1].port, 77);
        dt_msg_free(DT_MSG_TABLE, &got);
        close(fd);
    }
}

static void an_abort_is_reported_once(void **state)
{
    struct fixture *f = *state;
    struct dt_hostshm shm;
    uint32_t culprit = 0;

    begin_rank(f, 0, &shm);
    assert_int_equal(dt_hostshm_stopped(&shm, NULL), 0);
    uint32_t bell = atomic_load(&shm.ranks[0].doorbell);
    dt_ranksock_abort(f->sock, 0, DT_HOSTSHM_PEER_DIED, 5, "gone");
    dt_ranksock_abort(f->sock, 0, -3, 2, "later");
    assert_int_equal(dt_hostshm_stopped(&shm, &culprit), DT_HOSTSHM_PEER_DIED);
    assert_int_equal(culprit, 5);
    assert_string_equal(dt_hostshm_why(&shm), "gone");
    assert_int_equal(atomic_load(&shm.ranks[0].doorbell), bell + 1);
    struct dt_rankmsg m = receive(f, 0, NULL);
    assert_int_equal(m.type, DT_RANK_ABORT);
    assert_int_equal(m.abort.rank, 5);
    assert_int_equal(m.abort.code, DT_HOSTSHM_PEER_DIED);
    expect_no_message(f, 0);
    hello(f, 1, DT_RANK_PROTOCOL, SECOND);
    assert_int_equal(receive(f, 1, NULL).type, DT_RANK_WELCOME);
    assert_int_equal(receive(f, 1, NULL).type, DT_RANK_ABORT);
    dt_hostshm_unmap(&shm);
}

/* Rank 3 has reported why it stops the host. Rank 5 sees the stop, ends, and is reaped first. */
static void the_reason_of_a_failure_precedes_any_death(void **state)
{
    struct fixture *f = *state;
    struct dt_rankmsg m = { .type = DT_RANK_FAILED };
    struct dt_hostshm shm;
    int fd = -1;

    hello(f, 0, DT_RANK_PROTOCOL, FIRST);
    hello(f, 1, DT_RANK_PROTOCOL, SECOND);
    receive(f, 0, &fd);
    assert_int_equal(dt_hostshm_map(&shm, fd, GENERATION, RANKS, 0), 0);
    close(fd);
    m.failed.code = -3;
    m.failed.rank = SECOND;
    snprintf(m.failed.text, sizeof m.failed.text, "quarrel");
    assert_int_equal(dt_rankmsg_send(dt_ranksock_child_fd(f->sock, 0), &m, -1, 0), 0);
    dt_hostshm_stop(&shm, -3, SECOND);
    f->seen[0] = '\0';
    dt_ranksock_drain(f->sock, 1);
    assert_string_equal(f->seen, "failed(0,5,-3)[quarrel] ");
    dt_ranksock_abort(f->sock, 0, DT_HOSTSHM_PEER_DIED, SECOND, "death");
    assert_int_equal(dt_hostshm_stopped(&shm, NULL), -3);
    assert_string_equal(dt_hostshm_why(&shm), "");
    dt_hostshm_unmap(&shm);
}

/* Returns what the agent answers to a rank that wants the memory of a communicator. */
static struct dt_rankmsg want_memory(struct fixture *f, uint32_t local_rank, uint64_t comm,
                                     uint32_t members, int *fd)
{
    struct dt_rankmsg m = { .type = DT_RANK_WANT_MEMORY, .want_memory = { comm, members, SIZE } };

    tell(f, local_rank, &m);
    m = receive(f, local_rank, fd);
    assert_int_equal(m.type, DT_RANK_MEMORY);
    assert_true(m.memory.comm == comm);
    return m;
}

/* A rank gets the memory of a communicator. */
static void map_memory(struct fixture *f, uint32_t local_rank, uint64_t comm, uint32_t members,
                       struct dt_hostshm *shm)
{
    int fd = -1;

    assert_int_equal(want_memory(f, local_rank, comm, members, &fd).memory.error, 0);
    assert_int_equal(dt_hostshm_map(shm, fd, GENERATION, members, SIZE), 0);
    close(fd);
}

static void free_memory(struct fixture *f, uint32_t local_rank, uint64_t comm)
{
    struct dt_rankmsg m = { .type = DT_RANK_FREE_MEMORY, .free_memory = { comm } };

    tell(f, local_rank, &m);
}

static void a_communicator_has_memory_of_its_own(void **state)
{
    const uint64_t comm = 1ULL << 40 | 1;
    struct fixture *f = *state;
    struct dt_hostshm a, b;
    int fd = -1;

    welcome(f, 0);
    welcome(f, 1);
    assert_int_equal(want_memory(f, 0, 0, 1, &fd).memory.error, EINVAL);
    assert_int_equal(want_memory(f, 0, comm, 0, &fd).memory.error, EINVAL);
    assert_int_equal(want_memory(f, 0, comm, RANKS + 1, &fd).memory.error, EINVAL);
    assert_int_equal(fd, -1);
    map_memory(f, 0, comm, 2, &a);
    assert_int_equal(want_memory(f, 0, comm, 1, &fd).memory.error, EINVAL);
    map_memory(f, 1, comm, 2, &b);
    atomic_store(&a.ranks[1].call, 77);
    assert_int_equal(atomic_load(&b.ranks[1].call), 77);
    assert_int_equal(want_memory(f, 1, comm, 2, &fd).memory.error, EINVAL);
    dt_hostshm_unmap(&b);

    /* The number means a new communicator when all ranks are done with the first. */
    free_memory(f, 0, comm);
    assert_int_equal(want_memory(f, 1, comm, 2, &fd).memory.error, EINVAL);
    free_memory(f, 1, comm);
    map_memory(f, 1, comm, 1, &b);
    atomic_store(&b.ranks[0].call, 78);
    assert_int_equal(atomic_load(&a.ranks[0].call), 0);
    dt_hostshm_unmap(&a);
    dt_hostshm_unmap(&b);
}

static void a_stop_reaches_the_memory_it_is_for(void **state)
{
    enum { ONE = 7, OTHER = 8, LATE = 9 };
    struct fixture *f = *state;
    struct dt_hostshm one, other, late;
    struct dt_rankmsg m;

    welcome(f, 0);
    map_memory(f, 0, ONE, 1, &one);
    map_memory(f, 0, OTHER, 1, &other);
    dt_ranksock_abort(f->sock, ONE, -13, SECOND, "enough");
    m = receive(f, 0, NULL);
    assert_int_equal(m.type, DT_RANK_ABORT);
    assert_int_equal(m.abort.comm, ONE);
    assert_int_equal(m.abort.code, -13);
    assert_int_equal(dt_hostshm_stopped(&one, NULL), -13);
    assert_string_equal(dt_hostshm_why(&one), "enough");
    assert_int_equal(dt_hostshm_stopped(&other, NULL), 0);
    dt_ranksock_abort(f->sock, 0, DT_HOSTSHM_PEER_DIED, SECOND, "");
    assert_int_equal(receive(f, 0, NULL).abort.comm, 0);
    assert_int_equal(dt_hostshm_stopped(&one, NULL), -13);
    assert_int_equal(dt_hostshm_stopped(&other, NULL), DT_HOSTSHM_PEER_DIED);
    map_memory(f, 0, LATE, 1, &late);
    assert_int_equal(dt_hostshm_stopped(&late, NULL), DT_HOSTSHM_PEER_DIED);
    dt_hostshm_unmap(&one);
    dt_hostshm_unmap(&other);
    dt_hostshm_unmap(&late);
}

/* Returns what the agent reports about the communicator, or NULL. */
static const struct dt_msg_comm *report_of(const struct dt_msg_list *comms, uint64_t comm)
{
    const struct dt_msg_comm *c = comms->v;

    for (uint32_t i = 0; i < comms->n; i++) {
        if (c[i].comm == comm)
            return &c[i];
    }
    return NULL;
}

static void look(struct fixture *f, uint64_t ask, struct dt_msg_list *comms)
{
    struct dt_msg_asked asked = { ask };
    struct dt_msg_pong pong = { 0 };

    dt_callwatch_free_report(comms);
    dt_ranksock_look(f->sock, &(struct dt_msg_list){ &asked, ask != 0 }, &pong);
    *comms = pong.comms;
    f->limit_ms = pong.limit_ms;
    assert_non_null(report_of(comms, 0));
}

static void ranks_that_wait_are_reported(void **state)
{
    enum { COMM = 7, NONE = 8 };
    static const uint32_t members[SIZE] = { FIRST, 0, SECOND, 1 };
    struct fixture *f = *state;
    const struct dt_msg_called *ranks;
    struct dt_msg_list comms = { 0 };
    struct dt_hostshm shm;

    welcome(f, 0);
    map_memory(f, 0, COMM, 2, &shm);
    look(f, COMM, &comms);
    assert_int_equal(report_of(&comms, COMM)->ranks.n, 0); /* it is still being made */
    for (int i = 0; i < SIZE; i++)
        atomic_store(&shm.members[i], members[i] + 1);
    look(f, 0, &comms);
    assert_null(report_of(&comms, COMM));
    dt_hostshm_note_call(&shm.ranks[1], 3, DT_HOSTSHM_INSIDE | DT_CALL_BARRIER);
    look(f, 0, &comms); /* the next look reports the duration */
    assert_null(report_of(&comms, COMM));
    look(f, NONE, &comms);
    assert_int_equal(report_of(&comms, NONE)->ranks.n, 0);
    assert_memory_equal(report_of(&comms, COMM)->members.v, members, sizeof members);
    ranks = report_of(&comms, COMM)->ranks.v;
    assert_int_equal(report_of(&comms, COMM)->ranks.n, 2);
    assert_int_equal(ranks[0].rank, 0);
    assert_int_equal(ranks[0].call, 0);
    assert_int_equal(ranks[1].rank, 2);
    assert_int_equal(ranks[1].place, 0);
    assert_int_equal(ranks[1].call, 3 << 8 | DT_HOSTSHM_INSIDE | DT_CALL_BARRIER);
    dt_hostshm_note_call(&shm.ranks[1], 3, DT_CALL_BARRIER);
    dt_hostshm_enter_pair(&shm.ranks[0], 0, dt_hostshm_pair(1, 2, DT_CALL_SEND), 0, 0);
    dt_hostshm_enter_pair(&shm.ranks[0], 1, dt_hostshm_pair(1, 3, DT_CALL_RECV), 0, 0);
    dt_hostshm_leave_pair(&shm.ranks[0], 0);
    look(f, 0, &comms);
    look(f, 0, &comms);
    ranks = report_of(&comms, COMM)->ranks.v;
    assert_int_equal(report_of(&comms, COMM)->ranks.n, 4);
    assert_int_equal(ranks[2].rank, 0);
    assert_int_equal(ranks[2].place, 2);
    assert_int_equal(dt_hostshm_pair_peer(ranks[2].call), 3);
    dt_ranksock_reset_waits(f->sock);
    look(f, 0, &comms);
    assert_null(report_of(&comms, COMM));
    dt_callwatch_free_report(&comms);
    dt_hostshm_unmap(&shm);
}

static void expect_inside(struct fixture *f, bool first, bool second)
{
    bool *inside = dt_ranksock_inside(f->sock);

    assert_int_equal(inside[0], first);
    assert_int_equal(inside[1], second);
    free(inside);
}

/* Ranks are inside calls on the communicator of all ranks, on one with another order, and of a
 * pair. */
static void ranks_are_inside_calls_of_all_kinds(void **state)
{
    static const uint32_t members[SIZE] = { SECOND, 0, FIRST, 1 };
    const unsigned inside = DT_HOSTSHM_INSIDE | DT_CALL_BARRIER;
    struct fixture *f = *state;
    struct dt_hostshm world, shm;

    begin_rank(f, 0, &world);
    map_memory(f, 0, 7, 2, &shm);
    dt_hostshm_note_call(&shm.ranks[0], 3, inside);
    expect_inside(f, false, false); /* its members are not known yet */
    for (int i = 0; i < SIZE; i++)
        atomic_store(&shm.members[i], members[i] + 1);
    expect_inside(f, false, true);
    dt_hostshm_note_call(&shm.ranks[0], 3, DT_CALL_BARRIER);
    dt_hostshm_enter_pair(&shm.ranks[1], 3, dt_hostshm_pair(1, 0, DT_CALL_RECV), 0, 0);
    expect_inside(f, true, false);
    dt_hostshm_leave_pair(&shm.ranks[1], 3);
    dt_hostshm_note_call(&world.ranks[1], 4, inside);
    expect_inside(f, false, true);
    dt_hostshm_unmap(&world);
    dt_hostshm_unmap(&shm);
}

/* This happens if there was no room for the message. */
static void a_failure_without_a_message_is_found_in_memory(void **state)
{
    enum { COMM = 7, LOST = 8 };
    struct fixture *f = *state;
    struct dt_msg_list comms = { 0 };
    struct dt_hostshm shm, lost, world;

    begin_rank(f, 0, &world);
    map_memory(f, 0, COMM, 1, &shm);
    map_memory(f, 0, LOST, 1, &lost);
    f->seen[0] = '\0';
    dt_hostshm_stop_because(&shm, -3, SECOND, "they quarrel");
    dt_hostshm_stop(&lost, DT_HOSTSHM_PEER_DIED, SECOND);
    look(f, 0, &comms);
    look(f, 0, &comms);
    assert_string_equal(f->seen, "failed(7,5,-3)[they quarrel] ");
    f->seen[0] = '\0';
    dt_hostshm_stop_because(&world, -7, FIRST, "no memory");
    dt_ranksock_drain(f->sock, 1);
    look(f, 0, &comms);
    assert_string_equal(f->seen, "failed(0,3,-7)[no memory] ");
    dt_callwatch_free_report(&comms);
    dt_hostshm_unmap(&shm);
    dt_hostshm_unmap(&lost);
    dt_hostshm_unmap(&world);
}

static struct dt_rankmsg want_segment(struct fixture *f, uint64_t comm, uint32_t members, int *fd)
{
    struct dt_rankmsg m = { .type = DT_RANK_WANT_SEGMENT,
                            .want_segment = {
                                .comm = comm, .call = 1, .bytes = 4096, .members = members } };

    tell(f, 0, &m);
    m = receive(f, 0, fd);
    assert_int_equal(m.type, DT_RANK_SEGMENT);
    assert_true(m.segment.comm == comm);
    return m;
}

static void buffers_are_for_ranks_of_one_communicator(void **state)
{
    enum { COMM = 7 };
    struct fixture *f = *state;
    int fd = -1;

    welcome(f, 0);
    assert_int_equal(want_segment(f, COMM, 1, &fd).segment.error, EINVAL);
    assert_int_equal(want_segment(f, 0, 1, &fd).segment.error, EINVAL);
    assert_int_equal(fd, -1);
    assert_int_equal(want_segment(f, 0, RANKS, &fd).segment.error, 0);
    close(fd);
    assert_int_equal(want_memory(f, 0, COMM, 1, &fd).memory.error, 0);
    close(fd);
    assert_int_equal(want_segment(f, COMM, 1, &fd).segment.error, 0);
    close(fd);
}

/* The test is rank and agent, so both lack descriptors. */
static void a_rank_learns_that_its_descriptor_was_lost(void **state)
{
    struct fixture *f = *state;
    const struct dt_rankmsg m = {
        .type = DT_RANK_WANT_SEGMENT,
        .want_segment = { .call = 1, .bytes = 8, .members = RANKS, .giver = 1, .takers = 1 }
    };
    int fd = dt_sealed_create("given", 8), lowest;
    struct rlimit before, none;

    welcome(f, 0);
    welcome(f, 1);
    assert_int_equal(dt_rankmsg_send(dt_ranksock_child_fd(f->sock, 0), &m, fd, 0), 0);
    lowest = dup(fd);
    close(lowest);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){ (rlim_t)lowest, before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    run_loop_once(f);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    close(fd);
    assert_int_equal(receive(f, 0, NULL).segment.error, EMFILE);
}

static void a_descriptor_reaches_the_ranks_that_it_is_for(void **state)
{
    struct fixture *f = *state;
    struct dt_rankmsg m = {
        .type = DT_RANK_WANT_SEGMENT,
        .want_segment = { .call = 1, .bytes = 8, .members = RANKS, .giver = 1, .takers = 1 }
    };
    struct stat given, taken;
    int fd = dt_sealed_create("given", 8);

    welcome(f, 0);
    welcome(f, 1);
    assert_int_equal(fstat(fd, &given), 0);
    assert_int_equal(dt_rankmsg_send(dt_ranksock_child_fd(f->sock, 0), &m, fd, 0), 0);
    close(fd);
    run_loop_once(f);
    assert_int_equal(receive(f, 0, &fd).segment.error, 0);
    assert_int_equal(fd, -1);
    tell(f, 1, &m);
    assert_int_equal(receive(f, 1, &fd).segment.error, 0);
    assert_int_equal(fstat(fd, &taken), 0);
    assert_int_equal(taken.st_ino, given.st_ino);
    close(fd);
}

/* A rank may write anything into its socket and into shared memory. */
static void a_lying_rank_ends_no_other(void **state)
{
    struct fixture *f = *state;
    struct dt_rankmsg m = { .type = DT_RANK_FAILED, .failed = { 0, 5, 99, "no" } };
    struct dt_msg_list comms = { 0 };
    struct dt_hostshm world;
    int fd = -1;

    begin_rank(f, 0, &world);
    assert_int_equal(want_memory(f, 0, 7, 2, &fd).memory.error, 0);
    close(fd);
    f->seen[0] = '\0';
    assert_int_equal(dt_rankmsg_send(dt_ranksock_child_fd(f->sock, 0), &m, -1, 0), 0);
    m.failed.code = INT32_MIN;
    assert_int_equal(dt_rankmsg_send(dt_ranksock_child_fd(f->sock, 0), &m, -1, 0), 0);
    m.failed.code = -3;
    m.failed.comm = 7;
    tell(f, 0, &m);
    assert_non_null(strstr(f->seen, "failed(7,3,-3)[no] ")); /* there is no rank 99 */
    assert_null(strstr(f->seen, "failed(0"));
    assert_non_null(
        strstr(f->seen, "log[rank 3 (host2): sent a message that it may not send; it was ign"));
    f->seen[0] = '\0';
    m = (struct dt_rankmsg){ .type = DT_RANK_COMMIT,
                             .commit = { 1000, 0 } }; /* only rank 0 commits */
    tell(f, 0, &m);
    assert_string_equal(f->seen, "");
    f->seen[0] = '\0';
    world.head->local_size = UINT32_MAX;
    atomic_store(&world.head->stop, (uint64_t)SECOND << 32 | 3);
    atomic_store(&world.head->reasons, UINT32_MAX);
    atomic_store(&world.reasons[0].stop, (uint64_t)SECOND << 32 | 3);
    memset(world.reasons[0].text, 'x', sizeof world.reasons[0].text);
    look(f, 0, &comms);
    assert_non_null(strstr(f->seen, "failed(0,5,-3)[xxxx"));
    assert_int_equal(report_of(&comms, 0)->ranks.n, RANKS);
    dt_callwatch_free_report(&comms);
    dt_hostshm_unmap(&world);
}

static void say(struct fixture *f, const struct dt_rankmsg *m, int times)
{
    for (int i = 0; i < times; i++)
        assert_int_equal(dt_rankmsg_send(dt_ranksock_child_fd(f->sock, 0), m, -1, 0), 0);
}

static void a_failure_is_reported_once(void **state)
{
    struct fixture *f = *state;
    struct dt_rankmsg m = { .type = DT_RANK_FAILED, .failed = { 7, -3, SECOND, "no" } };
    int fd = -1;

    welcome(f, 0);
    assert_int_equal(want_memory(f, 0, 7, 2, &fd).memory.error, 0);
    close(fd);
    f->seen[0] = '\0';
    say(f, &m, 2);
    m.failed.comm = 0;
    say(f, &m, 2);
    run_loop_once(f);
    assert_string_equal(f->seen, "failed(7,5,-3)[no] failed(0,5,-3)[no] ");
}

static void messages_that_the_launcher_does_not_take_wait_in_the_socket(void **state)
{
    struct fixture *f = *state;
    struct dt_rankmsg m = { .type = DT_RANK_LIMIT, .limit = { 250 } };

    hello(f, 0, DT_RANK_PROTOCOL, FIRST);
    f->seen[0] = '\0';
    f->full = true;
    tell(f, 0, &m);
    run_loop_once(f);
    assert_string_equal(f->seen, "");
    f->full = false;
    dt_ranksock_room(f->sock);
    run_loop_once(f);
    assert_string_equal(f->seen, "limit(250) ");
    dt_ranksock_room(f->sock);
    m.limit.ms = 200;
    tell(f, 0, &m);
    assert_string_equal(f->seen, "limit(250) limit(200) ");
}

/* Sends the note "la" until none is passed on any more. */
static void say_until_limited(struct fixture *f, struct dt_rankmsg *note, const char *first)
{
    enum { MANY = 1100, AT_A_TIME = 20 };

    for (int i = 0; i < MANY; i += AT_A_TIME) {
        f->seen[0] = '\0';
        say(f, note, AT_A_TIME);
        run_loop_once(f);
        if (i == 0)
            assert_non_null(strstr(f->seen, first));
        if (!strstr(f->seen, "[la]"))
            break;
    }
}

static void a_detail_is_no_note_and_delays_none(void **state)
{
    struct fixture *f = *state;
    struct dt_rankmsg m = { .type = DT_RANK_NOTE, .note = { .detail = 1, .text = "la" } };

    hello(f, 0, DT_RANK_PROTOCOL, FIRST);
    say_until_limited(f, &m, "detail[la] detail[la] ");
    assert_string_equal(f->seen, "");
    m.note.detail = 0;
    tell(f, 0, &m);
    assert_string_equal(f->seen, "log[la] ");
}

static void a_rank_that_sends_endlessly_is_read_slowly(void **state)
{
    struct fixture *f = *state;
    struct dt_rankmsg m = { .type = DT_RANK_NOTE, .note = { .text = "la" } };

    hello(f, 0, DT_RANK_PROTOCOL, FIRST);
    say_until_limited(f, &m, "log[la] log[la] ");
    assert_string_equal(f->seen, "log[rank 3 (host2): has sent so many notes that from now on "
                                 "only one a minute is shown] ");
    f->seen[0] = '\0';
    tell(f, 0, &m);
    assert_string_equal(f->seen, "");
}

static void say_limit(struct fixture *f, uint32_t ms, const char *seen)
{
    struct dt_rankmsg m = { .type = DT_RANK_LIMIT, .limit = { ms } };

    f->seen[0] = '\0';
    tell(f, 0, &m);
    assert_string_equal(f->seen, seen);
}

/* A rank may set a limit for each of its calls. The launcher hears only what it needs. */
static void a_shorter_limit_is_passed_on(void **state)
{
    struct fixture *f = *state;
    struct dt_msg_list comms = { 0 };

    hello(f, 0, DT_RANK_PROTOCOL, FIRST);
    say_limit(f, 250, "limit(250) ");
    say_limit(f, 250, "");
    say_limit(f, 300, "");
    say_limit(f, 0, "");
    say_limit(f, DT_HOSTSHM_NO_LIMIT, "");
    say_limit(f, 200, "limit(200) ");
    look(f, 0, &comms); /* reports that no limit is left */
    say_limit(f, 300, "limit(300) ");
    dt_callwatch_free_report(&comms);
}

static void a_limit_counts_during_its_call(void **state)
{
    enum { COMM = 7 };
    struct fixture *f = *state;
    struct dt_msg_list comms = { 0 };
    struct dt_hostshm shm, world;

    begin_rank(f, 0, &world);
    map_memory(f, 0, COMM, 1, &shm);
    look(f, 0, &comms);
    assert_int_equal(f->limit_ms, 0);
    atomic_store(&world.ranks[1].least_limit_ms, 5000);
    atomic_store(&shm.ranks[0].least_limit_ms, 300);
    look(f, 0, &comms);
    assert_int_equal(f->limit_ms, 300);
    dt_hostshm_stop(&shm, DT_HOSTSHM_TIMED_OUT, SECOND); /* it has done its work */
    look(f, 0, &comms);
    assert_int_equal(f->limit_ms, 5000);
    atomic_store(&world.ranks[1].least_limit_ms, 0);
    look(f, 0, &comms);
    assert_int_equal(f->limit_ms, 0);
    dt_callwatch_free_report(&comms);
    dt_hostshm_unmap(&shm);
    dt_hostshm_unmap(&world);
}

/* Returns what the agent reports about that rank of this host in a place, at a look. */
static struct dt_msg_called reported_call(struct fixture *f, uint32_t rank, uint8_t place)
{
    struct dt_msg_called found = { 0 };
    const struct dt_msg_comm *world;
    struct dt_msg_list comms = { 0 };

    look(f, 0, &comms);
    world = report_of(&comms, 0);
    for (uint32_t i = 0; i < world->ranks.n; i++) {
        struct dt_msg_called called = ((const struct dt_msg_called *)world->ranks.v)[i];

        if (called.rank == rank && called.place == place)
            found = called;
    }
    dt_callwatch_free_report(&comms);
    return found;
}

static void each_call_is_reported_with_its_limit(void **state)
{
    enum { BARRIER = DT_HOSTSHM_INSIDE | DT_CALL_BARRIER };
    struct fixture *f = *state;
    struct dt_hostshm world;
    struct dt_hostshm_rank *rank;

    begin_rank(f, 0, &world);
    rank = &world.ranks[1];
    dt_hostshm_note_limit(rank, 4000);
    dt_hostshm_note_call(rank, 3, BARRIER);
    dt_hostshm_enter_pair(rank, 0, dt_hostshm_pair(1, 0, DT_CALL_SEND), 700, 0);
    dt_hostshm_enter_pair(rank, 1, dt_hostshm_pair(1, 0, DT_CALL_RECV), 0, 0);
    for (int looks = 0; looks < 2; looks++) {
        assert_int_equal(reported_call(f, SECOND, 0).limit_ms, 4000);
        assert_int_equal(reported_call(f, SECOND, 1).limit_ms, 700);
        assert_int_equal(reported_call(f, SECOND, 2).limit_ms, 0);
    }
    dt_hostshm_leave_pair(rank, 0);
    assert_int_equal(reported_call(f, SECOND, 1).limit_ms,
                     DT_HOSTSHM_NO_LIMIT); /* its time is over */
    dt_hostshm_note_call(rank, 3, DT_CALL_BARRIER);
    assert_int_equal(reported_call(f, SECOND, 0).limit_ms, DT_HOSTSHM_NO_LIMIT);
    dt_hostshm_note_limit(rank, 100);
    dt_hostshm_note_call(rank, 4, BARRIER);
    assert_int_equal(reported_call(f, SECOND, 0).limit_ms, 100);
    dt_hostshm_unmap(&world);
}

/* The agent knows whose calls they are, whatever the rank says. */
static void last_calls_are_passed_on_once(void **state)
{
    struct fixture *f = *state;
    struct dt_msg_last_call call = { 3, 0, (char *)"barrier", (char *)"inside", (char *)"-" };
    struct dt_msg_last_calls calls = { 77, 99, 7, -3, (char *)"/d", (char *)"", { &call, 1 } };
    struct dt_put out = { 0 };
    struct dt_rankmsg m = { .type = DT_RANK_LAST_CALLS };

    hello(f, 0, DT_RANK_PROTOCOL, FIRST);
    f->seen[0] = '\0';
    dt_msg_encode(&out, DT_MSG_LAST_CALLS, &calls);
    m.last_calls.bytes = (uint16_t)out.len;
    memcpy(m.last_calls.payload, out.data, out.len);
    m.last_calls.bytes--;
    tell(f, 0, &m);
    assert_non_null(strstr(f->seen, "reported its last calls twice, or in a malformed message"));
    f->seen[0] = '\0';
    m.last_calls.bytes++;
    for (int i = 0; i < 2; i++)
        tell(f, 0, &m);
    snprintf(f->seen + 500, 200, "last_calls(%d,%d,7,-3)[/d][] 1 barrier inside ", GENERATION,
             FIRST);
    assert_string_equal(f->seen, f->seen + 500);
    dt_put_free(&out);
}

static void a_rank_leaves_a_watched_step_when_told_to_go(void **state)
{
    struct fixture *f = *state;
    struct dt_rankmsg m = { .type = DT_RANK_STEP };
    struct dt_hostshm shm;

    dt_ranksock_watch_step(f->sock, 1, 50);
    begin_rank(f, 1, &shm);
    assert_int_equal(atomic_load(&shm.ranks[1].watch_step), 50);
    f->seen[0] = '\0';
    m.step.step = 51;
    tell(f, 1, &m);
    assert_string_equal(f->seen, "step(1,51) ");
    assert_int_equal(atomic_load(&shm.ranks[1].watch_step), INT64_MAX);
    dt_ranksock_go(f->sock, 1, 9);
    m = receive(f, 1, NULL);
    assert_int_equal(m.type, DT_RANK_GO);
    assert_int_equal(m.go.exit_code, 9);
    dt_hostshm_unmap(&shm);
}

static void messages_of_a_dead_rank_are_still_read(void **state)
{
    struct fixture *f = *state;
    struct dt_rankmsg m = { .type = DT_RANK_HELLO };
    int status;

    f->start.ranks.v[0] = 0; /* the rank that commits */
    pid_t pid = fork();
    if (pid == 0) {
        int fd = dt_ranksock_child_fd(f->sock, 0);
        m.hello.protocol = DT_RANK_PROTOCOL;
        m.hello.rank = 0;
        m.hello.generation = GENERATION;
        int r = dt_rankmsg_send(fd, &m, -1, 0);
        m = (struct dt_rankmsg){ .type = DT_RANK_COMMIT, .commit = { 12, 1 } };
        _exit(r == 0 && dt_rankmsg_send(fd, &m, -1, 0) == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    dt_ranksock_forked(f->sock, 0);
    assert_false(dt_ranksock_state(f->sock, 0).linked);
    dt_ranksock_drain(f->sock, 0);
    assert_true(dt_ranksock_state(f->sock, 0).linked);
    assert_string_equal(f->seen, "hello(0,0) commit(12,1) ");
    run_loop_once(f);
    run_loop_once(f);
    dt_ranksock_drain(f->sock, 0);
}

/* The kernel first reports that data was left unread, and then delivers what the rank sent. */
static void messages_of_a_rank_that_left_data_unread_are_read(void **state)
{
    struct fixture *f = *state;
    struct dt_rankmsg m = { .type = DT_RANK_COMMIT, .commit = { 12, 1 } };
    int go[2], status;
    char c;

    f->start.ranks.v[0] = 0; /* the rank that commits */
    assert_int_equal(pipe(go), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct dt_rankmsg hello = { .type = DT_RANK_HELLO };
        int fd = dt_ranksock_child_fd(f->sock, 0);

        hello.hello.protocol = DT_RANK_PROTOCOL;
        hello.hello.rank = 0;
        hello.hello.generation = GENERATION;
        close(go[1]);
        _exit(dt_rankmsg_send(fd, &hello, -1, 0) != 0 || read(go[0], &c, 1) != 0 ||
              dt_rankmsg_send(fd, &m, -1, 0) != 0);
    }
    close(go[0]);
    dt_ranksock_forked(f->sock, 0);
    while (!dt_ranksock_state(f->sock, 0).linked) /* its welcome is waiting then */
        run_loop_once(f);
    close(go[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    dt_ranksock_drain(f->sock, 0);
    assert_string_equal(f->seen, "hello(0,0) commit(12,1) ");
}

static void an_error_that_lasts_ends_the_conversation(void **state)
{
    struct fixture *f = *state;

    gvisor.on = true;
    hello(f, 0, DT_RANK_PROTOCOL, FIRST); /* its welcome is waiting then */
    dt_ranksock_forked(f->sock, 0);
    run_loop_once(f);
    dt_ranksock_drain(f->sock, 0);
    assert_int_not_equal(gvisor.reset, -1);
}

/* The other side loses nothing either. */
static void messages_arrive_although_other_data_was_left_unread(void **state)
{
    struct dt_rankmsg m = { .type = DT_RANK_GO, .go = { 3 } };
    const struct dt_rankmsg unread = { .type = DT_RANK_STEP };
    struct dt_rankmsg_from from;
    int s[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s), 0);
    assert_int_equal(dt_rankmsg_send(s[1], &m, -1, 0), 0);
    assert_int_equal(dt_rankmsg_send(s[0], &unread, -1, 0), 0);
    close(s[1]);
    m = unread;
    assert_int_equal(dt_rankmsg_recv(s[0], &m, &from, MSG_DONTWAIT), 1);
    assert_int_equal(m.type, DT_RANK_GO);
    assert_int_equal(dt_rankmsg_recv(s[0], &m, &from, MSG_DONTWAIT), 0);
    close(s[0]);
}

/* The rank would wait for its welcome for ever. */
static void a_message_that_cannot_be_sent_ends_the_conversation(void **state)
{
    static const char seen[] =
        "log[rank 3 (host2): a message for it cannot be sent: No buffer space "
        "available] hello(3,9003) ";
    struct fixture *f = *state;
    struct dt_rankmsg m = { .type = DT_RANK_HELLO };
    struct dt_rankmsg_from from;
    int fd = dt_ranksock_child_fd(f->sock, 0), status;
    pid_t pid;

    m.hello.protocol = DT_RANK_PROTOCOL;
    m.hello.rank = FIRST;
    m.hello.generation = GENERATION;
    m.hello.port = 9003;
    assert_int_equal(dt_rankmsg_send(fd, &m, -1, 0), 0);
    pid = fork();
    if (pid == 0) {
        if (!forbid(SYS_sendmsg, ENOBUFS))
            _exit(77);
        run_loop_once(f);
        _exit(strcmp(f->seen, seen) != 0 || dt_rankmsg_recv(fd, &m, &from, MSG_DONTWAIT) != 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (status == 77 << 8)
        skip();
    assert_int_equal(status, 0);
}

/* Each test has an agent's side of its own. */
#define FIXED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

/* Containers can do so. */
static void a_system_call_that_is_forbidden_is_named(void **state)
{
    static const struct dt_ranksock_events events = { 0 };
    uint32_t rank = 0;
    struct dt_msg_start start = { .np = 1, .nodes = 1, .ranks = { &rank, 1 } };
    int status;
    pid_t pid = fork();

    (void)state;
    if (pid == 0) {
        struct dt_error err = { 0 };
        uv_loop_t loop;

        if (uv_loop_init(&loop) || !forbid(SYS_memfd_create, EPERM))
            _exit(77);
        _exit(!dt_ranksock_create(&loop, &start, &events, NULL, &err) &&
                      strcmp(err.text, "cannot prepare 1 rank: Operation not permitted; does a "
                                       "filter of system calls (seccomp) there forbid "
                                       "memfd_create?") == 0
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (status == 77 << 8)
        skip();
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_system_call_that_is_forbidden_is_named),
        FIXED(a_rank_is_welcomed_with_shared_memory),
        FIXED(a_message_that_cannot_be_sent_ends_the_conversation),
        CHECKS_SETUP_TEARDOWN("34, 35", wrong_hellos_are_refused, setup, teardown),
        FIXED(garbage_is_ignored),
        FIXED(another_process_is_not_the_rank),
        FIXED(a_thread_is_the_rank_even_if_it_has_ended),
        FIXED(nobody_sends_the_end),
        FIXED(the_table_reaches_early_and_late_ranks),
        FIXED(an_abort_is_reported_once),
        FIXED(the_reason_of_a_failure_precedes_any_death),
        FIXED(a_rank_leaves_a_watched_step_when_told_to_go),
        FIXED(a_communicator_has_memory_of_its_own),
        FIXED(a_stop_reaches_the_memory_it_is_for),
        FIXED(ranks_that_wait_are_reported),
        FIXED(ranks_are_inside_calls_of_all_kinds),
        FIXED(a_failure_without_a_message_is_found_in_memory),
        FIXED(buffers_are_for_ranks_of_one_communicator),
        FIXED(a_rank_learns_that_its_descriptor_was_lost),
        FIXED(a_descriptor_reaches_the_ranks_that_it_is_for),
        FIXED(a_lying_rank_ends_no_other),
        FIXED(a_failure_is_reported_once),
        FIXED(messages_that_the_launcher_does_not_take_wait_in_the_socket),
        FIXED(a_detail_is_no_note_and_delays_none),
        FIXED(a_rank_that_sends_endlessly_is_read_slowly),
        FIXED(a_shorter_limit_is_passed_on),
        FIXED(a_limit_counts_during_its_call),
        FIXED(each_call_is_reported_with_its_limit),
        FIXED(last_calls_are_passed_on_once),
        FIXED(messages_of_a_dead_rank_are_still_read),
        FIXED(messages_of_a_rank_that_left_data_unread_are_read),
        FIXED(an_error_that_lasts_ends_the_conversation),
        cmocka_unit_test(messages_arrive_although_other_data_was_left_unread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
