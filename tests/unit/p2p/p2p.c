/* Calls between two ranks in the background, beside other calls: each waits only for its own
 * peer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/api/context.h"
#include "runtime/base/error.h"
#include "runtime/comm/comm.h"
#include "runtime/dtrun_tune.h"
#include "tests/unit/forbid.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/sanitized.h"
#include "tests/unit/testjob.h"

enum { FEW = 4, MANY = 64, COUNT = 300, MOST = 200000, RANKS = 5 };

static const char *const rings[] = { "2", "4", "1 1", "3 1", "2 1 2", NULL };
static const char *const pairs[] = { "2", "1 1", NULL };
static const char *const threes[] = { "3", "1 1 1", "2 1", NULL };

static void run_all(const char *const *placements, int (*body)(int rank, void *arg))
{
    assert_int_equal(testjob_pass_all(placements, body), 0);
}

static int64_t value(int from, int to, int k)
{
    return from * 1000000 + to * 1000 + k;
}

static dt_result_t give(int64_t *buf, size_t count, int peer, dt_request_t *request)
{
    return dt_isend(DT_WORLD, buf, count, DT_I64, peer, request);
}

static dt_result_t take(int64_t *buf, size_t count, int peer, dt_request_t *request)
{
    return dt_irecv(DT_WORLD, buf, count, DT_I64, peer, request);
}

/* ---- what programs do ---- */

/* Sends to the right and receives from the left, as halos are exchanged. Large messages fill all
 * buffers. */
static int shift(int rank, size_t count, int way)
{
    static int64_t out[MOST], in[MOST];
    int n = dt_size(), right = (rank + 1) % n, left = (rank + n - 1) % n;
    dt_request_t request[2];

    for (size_t i = 0; i < count; i++)
        out[i] = value(rank, right, (int)i % 1000);
    memset(in, 0, count * sizeof *in);
    if (way == 0) {
        NEED(take(in, count, left, &request[0]) == DT_OK);
        NEED(give(out, count, right, &request[1]) == DT_OK);
        NEED(dt_wait_all(request, 2) == DT_OK);
    } else if (way == 1) {
        NEED(give(out, count, right, &request[0]) == DT_OK);
        NEED(take(in, count, left, &request[1]) == DT_OK);
        NEED(dt_wait(&request[1]) == DT_OK && dt_wait(&request[0]) == DT_OK);
    } else if (way == 2) {
        NEED(take(in, count, left, &request[0]) == DT_OK);
        NEED(dt_send(DT_WORLD, out, count, DT_I64, right) == DT_OK);
        NEED(dt_wait(&request[0]) == DT_OK);
    } else {
        NEED(give(out, count, right, &request[0]) == DT_OK);
        NEED(dt_recv(DT_WORLD, in, count, DT_I64, left) == DT_OK);
        NEED(dt_wait(&request[0]) == DT_OK);
    }
    for (size_t i = 0; i < count; i++)
        NEED(in[i] == value(left, rank, (int)i % 1000));
    return 0;
}

static int shift_all(int rank, void *arg)
{
    static const size_t counts[] = { 1, 100, 0, MOST };

    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int way = 0; way < 4; way++) {
        for (size_t i = 0; i < 2 * sizeof counts / sizeof *counts; i += 1 + SANITIZED)
            NEED(shift(rank, counts[i / 2], way) == 0);
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

/* Thresholds change when each rank has used its channel to the right, but not yet the one from the
 * left. */
static int shift_while_tuned(int rank, void *arg)
{
    static int64_t out[MOST], in[MOST];
    dt_request_t request;

    (void)arg;
    NEED(dt_init() == DT_OK);
    int n = dt_size(), right = (rank + 1) % n, left = (rank + n - 1) % n;
    for (size_t i = 0; i < MOST; i++)
        out[i] = value(rank, right, (int)i % 1000);
    NEED(give(out, MOST, right, &request) == DT_OK);
    NEED(dt_comm_tune(DT_WORLD, "net_streams = 3") == DT_OK);
    NEED(dt_recv(DT_WORLD, in, MOST, DT_I64, left) == DT_OK);
    NEED(dt_wait(&request) == DT_OK);
    for (size_t i = 0; i < MOST; i++)
        NEED(in[i] == value(left, rank, (int)i % 1000));
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void channels_stay_when_thresholds_change(void **state)
{
    (void)state;
    run_all(rings, shift_while_tuned);
}

static void a_ring_can_be_shifted_by_any_kind_of_call(void **state)
{
    (void)state;
    run_all(rings, shift_all);
    testjob_streams(2);
    run_all(rings, shift_all);
    testjob_streams(0);
}

/* A receive under way holds up no collective, nor a split. */
static int begin_early(int rank, void *arg)
{
    int64_t x, sum;
    dt_request_t request;
    dt_comm_t *half;

    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int i = 0; i < 20; i++) {
        x = rank, sum = 1;
        if (rank == 0)
            NEED(take(&x, 1, 1, &request) == DT_OK);
        NEED(dt_all_reduce(DT_WORLD, DT_IN_PLACE, &sum, 1, DT_I64, DT_SUM) == DT_OK);
        NEED(dt_comm_split(DT_WORLD, rank % 2, 0, &half) == DT_OK);
        NEED(dt_comm_free(half) == DT_OK && sum == dt_size());
        if (rank == 1)
            NEED(dt_send(DT_WORLD, &x, 1, DT_I64, 0) == DT_OK);
        if (rank == 0)
            NEED(dt_wait(&request) == DT_OK && x == 1);
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void collectives_pass_waiting_receives(void **state)
{
    (void)state;
    run_all(rings, begin_early);
}

/* Rank 0 first begins to receive from 1. But 1 sends only what it had from 2, and 2 sends that only
 * after its message for 0. */
static int cross(int rank, void *arg)
{
    int64_t x[2] = { rank, rank };
    dt_request_t request[2];

    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int i = 0; i < 20; i++) {
        if (rank == 0) {
            NEED(take(&x[0], 1, 1, &request[0]) == DT_OK &&
                 take(&x[1], 1, 2, &request[1]) == DT_OK);
            NEED(dt_wait(&request[0]) == DT_OK && dt_wait(&request[1]) == DT_OK);
            NEED(x[0] == 2 && x[1] == 2);
        } else if (rank == 1) {
            NEED(dt_recv(DT_WORLD, x, 1, DT_I64, 2) == DT_OK);
            NEED(dt_send(DT_WORLD, x, 1, DT_I64, 0) == DT_OK);
        } else {
            NEED(dt_send(DT_WORLD, x, 1, DT_I64, 0) == DT_OK);
            NEED(dt_send(DT_WORLD, x, 1, DT_I64, 1) == DT_OK);
        }
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void a_peer_that_is_late_holds_up_no_other(void **state)
{
    (void)state;
    run_all(threes, cross);
}

static int64_t outs[RANKS][MANY][COUNT], ins[RANKS][MANY][COUNT];
static dt_request_t gives[RANKS][MANY], takes[RANKS][MANY];

/* 64 messages each way with every rank, of several sizes, waited for in a different order on each
 * rank. */
static int many(int rank, void *arg)
{
    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int k = 0; k < MANY; k++) {
        for (int peer = 0; peer < dt_size(); peer++) {
            size_t count = (size_t)(k * 5 % COUNT);

            if (peer == rank)
                continue;
            for (size_t i = 0; i < count; i++)
                outs[peer][k][i] = value(rank, peer, k);
            NEED(take(ins[peer][k], count, peer, &takes[peer][k]) == DT_OK);
            NEED(give(outs[peer][k], count, peer, &gives[peer][k]) == DT_OK);
        }
    }
    for (int i = 0; i < MANY * RANKS; i++) {
        int at = (i * 37 + rank * 11) % (MANY * RANKS), peer = at % RANKS, k = at / RANKS;
        size_t count = (size_t)(k * 5 % COUNT);

        NEED(dt_wait(&takes[peer][k]) == DT_OK && dt_wait(&gives[peer][(k + 7) % MANY]) == DT_OK);
        for (size_t j = 0; j < count && peer < dt_size() && peer != rank; j++)
            NEED(ins[peer][k][j] == value(peer, rank, k));
        NEED(count == 0 || ins[peer][k][count] == 0);
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void many_messages_are_matched_in_order(void **state)
{
    (void)state;
    run_all(rings, many);
}

/* Threads of one program, each with a direction of its own. */
static void *send_some(void *arg)
{
    for (int64_t i = 0; i < 500; i++) {
        if (dt_send(DT_WORLD, &i, 1, DT_I64, 1 - dt_rank()) != DT_OK)
            return NULL;
    }
    return arg;
}

static int two_threads(int rank, void *arg)
{
    pthread_t sender;
    void *sent;

    (void)arg;
    (void)rank;
    NEED(dt_init() == DT_OK);
    NEED(pthread_create(&sender, NULL, send_some, &sent) == 0);
    for (int64_t i = 0, got = -1; i < 500; i++)
        NEED(dt_recv(DT_WORLD, &got, 1, DT_I64, 1 - dt_rank()) == DT_OK && got == i);
    pthread_join(sender, &sent);
    NEED(sent != NULL);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void threads_may_send_and_receive_at_once(void **state)
{
    (void)state;
    run_all(pairs, two_threads);
}

/* ---- what goes wrong ---- */

static int misuse(int rank, void *arg)
{
    int64_t x = rank;
    dt_request_t request = { 7 };

    (void)arg;
    NEED(give(&x, 1, 1, &request) == DT_ERR_STATE && request.id == 0);
    NEED(dt_init() == DT_OK);
    NEED(give(&x, 1, dt_size(), &request) == DT_ERR_ARG && give(&x, 1, -1, &request) == DT_ERR_ARG);
    NEED(take(&x, 1, dt_size(), &request) == DT_ERR_ARG && strstr(dt_last_error(), "dt_irecv"));
    NEED(take(NULL, 1, 1 - rank, &request) == DT_ERR_ARG);
    NEED(take(&x, 1, 1 - rank, NULL) == DT_ERR_ARG);
    NEED(dt_irecv(DT_COMM_NULL, &x, 1, DT_I64, 0, &request) == DT_ERR_ARG && request.id == 0);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void wrong_arguments_are_refused_at_once(void **state)
{
    (void)state;
    run_all(pairs, misuse);
}

static int disagree(int rank, void *arg)
{
    int64_t x[8] = { 0 };
    dt_request_t request[2];

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(rank ? give(x, 2, 0, &request[0]) == DT_OK : take(x, 3, 1, &request[0]) == DT_OK);
    NEED(rank ? give(x, 2, 0, &request[1]) == DT_OK : take(x, 2, 1, &request[1]) == DT_OK);
    NEED(dt_wait(&request[0]) == DT_ERR_MISMATCH && strstr(dt_last_error(), "called"));
    NEED(dt_wait(&request[1]) == DT_ERR_MISMATCH);
    NEED(dt_barrier(DT_WORLD) == DT_ERR_MISMATCH);
    NEED(dt_finalize() == DT_ERR_MISMATCH);
    return 0;
}

static void a_mismatch_ends_all_waits(void **state)
{
    (void)state;
    run_all(pairs, disagree);
}

/* Rank 1 dies when the others have begun their calls, to which no other rank ever sends. */
static int left_alone(int rank, void *arg)
{
    static int64_t x[RANKS][4];
    dt_request_t request[RANKS][4];
    _Atomic int *begun = arg;

    NEED(dt_init() == DT_OK);
    *begun += 1;
    while (rank == 1 && *begun < dt_size())
        usleep(500);
    if (rank == 1)
        _exit(0);
    for (int peer = 0; peer < dt_size(); peer++) {
        for (int k = 0; k < 4 && peer != rank; k++)
            NEED(take(&x[peer][k], 1, peer, &request[peer][k]) == DT_OK);
    }
    for (int peer = 0; peer < dt_size(); peer++) {
        for (int k = 0; k < 4 && peer != rank; k++)
            NEED(dt_wait(&request[peer][k]) == DT_ERR_PEER);
    }
    NEED(dt_send(DT_WORLD, x, 1, DT_I64, rank ? 0 : 1) == DT_ERR_PEER);
    NEED(dt_finalize() == DT_ERR_PEER);
    return 0;
}

static void a_death_ends_all_waits(void **state)
{
    struct testjob_result result;

    (void)state;
    for (const char *const *p = threes; *p; p++) {
        struct testjob_plan plan = { .hosts = *p, .body = left_alone };

        plan.arg = testjob_shared(sizeof(_Atomic int));

        assert_int_equal(testjob_run(&plan, &result), 0);
        assert_int_equal(result.ranks[0].status, 0);
        assert_int_equal(result.ranks[2].status, 0);
    }
}

/* One communicator is aborted. Calls that wait on another go on. */
static int abort_one(int rank, void *arg)
{
    int64_t x = rank, y = rank;
    dt_request_t lost, kept;
    dt_comm_t *other;

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_comm_dup(DT_WORLD, &other) == DT_OK);
    NEED(dt_irecv(other, &x, 1, DT_I64, 1 - rank, &lost) == DT_OK);
    NEED(take(&y, 1, 1 - rank, &kept) == DT_OK);
    NEED(rank || dt_comm_abort(other) == DT_OK);
    NEED(dt_wait(&lost) == DT_ERR_ABORTED && strstr(dt_last_error(), "dt_comm_abort"));
    NEED(dt_comm_free(other) == DT_ERR_ABORTED);
    x = rank;
    NEED(dt_send(DT_WORLD, &x, 1, DT_I64, 1 - rank) == DT_OK);
    NEED(dt_wait(&kept) == DT_OK && y == 1 - rank);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void an_abort_ends_the_waits_on_its_communicator(void **state)
{
    (void)state;
    run_all(pairs, abort_one);
}

static void fail_comm(struct dt_comm *c, void *arg)
{
    (void)arg;
    dt_comm_fail(c, dt_fail(DT_ERR_IO, "a test"));
}

/* A rank without an agent. Nobody tells its other communicators that DT_WORLD has failed. */
static int fail_world(void)
{
    int64_t x = 1, y;
    dt_request_t request;
    dt_comm_t *alone;

    NEED(dt_init() == DT_OK);
    NEED(dt_comm_split(DT_WORLD, 0, 0, &alone) == DT_OK);
    NEED(dt_context_visit("a test", DT_WORLD, fail_comm, NULL) == DT_OK);
    NEED(dt_irecv(alone, &y, 1, DT_I64, 0, &request) == DT_OK);
    NEED(dt_send(alone, &x, 1, DT_I64, 0) == DT_ERR_IO);
    NEED(dt_wait(&request) == DT_ERR_IO);
    NEED(dt_barrier(alone) == DT_ERR_IO);
    NEED(dt_finalize() == DT_ERR_IO);
    return 0;
}

static void a_failure_of_the_world_ends_what_a_rank_sends_to_itself(void **state)
{
    int status;
    pid_t child = fork();

    (void)state;
    if (child == 0)
        _exit(fail_world());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* dt_finalize is refused while calls are under way. dt_comm_free waits for them. */
static int leave_early(int rank, void *arg)
{
    int64_t x = rank, y = rank;
    dt_request_t first, second;
    dt_comm_t *other;

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_comm_dup(DT_WORLD, &other) == DT_OK);
    if (rank == 0) {
        NEED(take(&x, 1, 1, &first) == DT_OK);
        NEED(dt_finalize() == DT_ERR_STATE && strstr(dt_last_error(), "request"));
    }
    NEED(dt_barrier(DT_WORLD) == DT_OK);
    NEED(rank == 0 || give(&x, 1, 0, &first) == DT_OK);
    NEED(dt_wait(&first) == DT_OK && x == 1);
    NEED((rank ? dt_isend(other, &x, 1, DT_I64, 0, &second)
               : dt_irecv(other, &y, 1, DT_I64, 1, &second)) == DT_OK);
    NEED(dt_comm_free(other) == DT_OK && y == 1);
    NEED(dt_wait(&second) == DT_OK);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void calls_under_way_are_not_left_behind(void **state)
{
    (void)state;
    run_all(pairs, leave_early);
}

/* ---- what the agent learns ---- */

static _Atomic int *seen;

struct looked_for {
    unsigned kind;
    uint32_t number; /* 0: not found */
};

static void look_for(struct dt_comm *c, void *arg)
{
    struct looked_for *l = arg;

    for (int i = 0; i < DT_HOSTSHM_PAIRS; i++) {
        uint64_t pair = c->shm.map.ranks[c->local_rank].pairs[i];

        if (dt_hostshm_pair_peer(pair) == (uint32_t)(1 - c->rank) &&
            (pair & 0xff) == (DT_HOSTSHM_INSIDE | l->kind))
            l->number = dt_hostshm_pair_number(pair);
    }
}

/* The number of the call in which this rank is seen to wait for the other one, or 0. */
static uint32_t waits_in(dt_comm_t *comm, unsigned kind)
{
    struct looked_for l = { kind, 0 };

    return dt_context_visit("test", comm, look_for, &l) == DT_OK ? l.number : 0;
}

static void *give_two(void *count)
{
    static int64_t x[MOST];
    dt_request_t request;

    if (give(x, *(size_t *)count, 1, &request) != DT_OK ||
        dt_send(DT_WORLD, x, 1, DT_I64, 1) != DT_OK || dt_wait(&request) != DT_OK)
        return count;
    return NULL;
}

static void see_since(struct dt_comm *c, void *since_ns)
{
    *(uint64_t *)since_ns = dt_p2p_find(c, 1, true)->since_ns;
}

/* A long send stays ahead of the second call until that is seen to wait, since then. */
static int send_behind(int rank, void *arg)
{
    static int64_t in[MOST];
    uint64_t since_ns = 0;
    void *failed = NULL;
    pthread_t thread;

    NEED(dt_init() == DT_OK);
    if (rank == 0) {
        NEED(pthread_create(&thread, NULL, give_two, arg) == 0);
        while (waits_in(DT_WORLD, DT_CALL_SEND) != 2)
            sched_yield();
        *seen = 1;
        pthread_join(thread, &failed);
        NEED(dt_context_visit("test", DT_WORLD, see_since, &since_ns) == DT_OK);
        NEED(since_ns || *(size_t *)arg < MOST);
    } else {
        while (!*seen)
            usleep(500);
        NEED(dt_recv(DT_WORLD, in, *(size_t *)arg, DT_I64, 0) == DT_OK);
        NEED(dt_recv(DT_WORLD, in, 1, DT_I64, 0) == DT_OK);
    }
    NEED(!failed && dt_finalize() == DT_OK);
    return 0;
}

static void a_call_behind_a_request_is_seen_to_wait(void **state)
{
    static size_t counts[] = { 1, MOST };

    (void)state;
    seen = testjob_shared(sizeof *seen);
    for (int i = 0; i < 4; i++) {
        *seen = 0;
        testjob_must_pass(pairs[i / 2], send_behind, &counts[i % 2]);
    }
}

static void *wait_for_each(void *failed)
{
    int64_t x;
    dt_request_t request;

    for (int i = 0; i < FEW; i++) {
        if (take(&x, 1, 1, &request) != DT_OK || dt_wait(&request) != DT_OK || x != i)
            return failed;
    }
    return NULL;
}

/* Rank 0 waits nearly all the time, but for a new request each time. */
static int give_slowly(int rank, void *arg)
{
    void *failed = NULL;
    pthread_t thread;

    (void)arg;
    NEED(dt_init() == DT_OK);
    if (rank == 0)
        NEED(pthread_create(&thread, NULL, wait_for_each, (void *)seen) == 0);
    for (int64_t i = 0; i < FEW; i++) {
        while (rank == 0 && waits_in(DT_WORLD, DT_CALL_RECV) != i + 1)
            sched_yield();
        *seen += rank == 0;
        while (*seen <= i)
            sched_yield();
        NEED(rank == 0 || dt_send(DT_WORLD, &i, 1, DT_I64, 0) == DT_OK);
    }
    if (rank == 0)
        pthread_join(thread, &failed);
    NEED(!failed && dt_finalize() == DT_OK);
    return 0;
}

/* Otherwise many short waits would look like a long one. */
static void each_wait_for_a_request_is_seen_separately(void **state)
{
    (void)state;
    seen = testjob_shared(sizeof *seen);
    for (int i = 0; pairs[i]; i++) {
        *seen = 0;
        testjob_must_pass(pairs[i], give_slowly, NULL);
    }
}

enum { CROWD = DT_HOSTSHM_PAIRS + 1 };

struct crowd {
    uint32_t noted;
    bool has_last; /* the wait for the last rank is among them */
    uint32_t late; /* ranks whose waits are not noted */
};

static void look_at_crowd(struct dt_comm *c, void *arg)
{
    struct crowd *crowd = arg;

    crowd->late = c->notes.n;
    for (int i = 0; i < DT_HOSTSHM_PAIRS; i++) {
        uint64_t pair = c->shm.map.ranks[c->local_rank].pairs[i];

        crowd->noted += (pair & DT_HOSTSHM_INSIDE) != 0;
        crowd->has_last |= (pair & DT_HOSTSHM_INSIDE) && dt_hostshm_pair_peer(pair) == CROWD;
    }
}

static struct crowd crowd_now(void)
{
    struct crowd crowd = { 0 };

    (void)dt_context_visit("test", DT_WORLD, look_at_crowd, &crowd);
    return crowd;
}

static void *take_one(void *peer)
{
    int64_t x;
    dt_result_t r = dt_recv(DT_WORLD, &x, 1, DT_I64, *(int *)peer);

    return r == DT_OK && x == *(int *)peer ? NULL : peer;
}

/* If the last wait has a limit of its own, it replaces another one. */
static int wait_for_crowd(bool is_due)
{
    pthread_t threads[CROWD];
    struct crowd crowd;
    int peers[CROWD];
    void *failed;

    for (int i = 0; i < CROWD; i++) {
        peers[i] = i + 1;
        NEED(!is_due || i < CROWD - 1 || dt_comm_set_timeout(DT_WORLD, 1000) == DT_OK);
        NEED(pthread_create(&threads[i], NULL, take_one, &peers[i]) == 0);
        do {
            crowd = crowd_now();
        } while (crowd.noted + crowd.late <= (uint32_t)i);
    }
    while (is_due && !crowd_now().has_last)
        sched_yield();
    crowd = crowd_now();
    NEED(crowd.late == 1 && crowd.has_last == is_due);
    *seen = 1;
    while (!crowd_now().has_last)
        sched_yield();
    *seen = CROWD;
    for (int i = 0; i < CROWD; i++)
        NEED(pthread_join(threads[i], &failed) == 0 && !failed);
    return 0;
}

/* A thread of rank 0 waits for each other rank, one more than can be noted. Rank 1 sends when all
 * wait, the others when no wait is left out. */
static int wait_in_crowd(int rank, void *arg)
{
    int64_t x = rank;

    NEED(dt_init() == DT_OK);
    while (rank && *seen < rank && *seen < CROWD)
        sched_yield();
    NEED(rank ? dt_send(DT_WORLD, &x, 1, DT_I64, 0) == DT_OK : wait_for_crowd(*(bool *)arg) == 0);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void every_one_of_many_waits_is_seen_in_the_end(void **state)
{
    static const char *const sixes[] = { "6", "2 4" };
    bool due[] = { false, true };

    (void)state;
    seen = testjob_shared(sizeof *seen);
    for (size_t i = 0; i < 4; i++) {
        *seen = 0;
        testjob_must_pass(sixes[i / 2], wait_in_crowd, &due[i % 2]);
    }
}

static void *free_it(void *comm)
{
    return dt_comm_free(*(dt_comm_t **)comm) == DT_OK ? NULL : comm;
}

/* Both ranks want to receive and neither sends. */
static int free_in_vain(int rank, void *arg)
{
    int64_t x[2];
    dt_request_t wanted[2];
    dt_comm_t *comm;
    pthread_t thread;
    void *failed;

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_comm_dup(DT_WORLD, &comm) == DT_OK);
    for (int i = 0; i < 2; i++)
        NEED(dt_irecv(comm, &x[i], 1, DT_I64, 1 - rank, &wanted[i]) == DT_OK);
    NEED(pthread_create(&thread, NULL, free_it, &comm) == 0);
    while (waits_in(comm, DT_CALL_RECV) != 2)
        sched_yield();
    NEED(dt_isend(comm, x, 1, DT_I64, 1 - rank, &wanted[1]) == DT_ERR_STATE);
    *seen += 1;
    while (*seen < 2)
        sched_yield();
    NEED(rank || dt_comm_abort(comm) == DT_OK);
    pthread_join(thread, &failed);
    NEED(!failed);
    NEED(dt_wait(&wanted[0]) == DT_ERR_ABORTED && strstr(dt_last_error(), "recv of 1 i64"));
    NEED(dt_barrier(comm) == DT_ERR_STATE && dt_comm_abort(comm) == DT_ERR_STATE);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void a_free_that_waits_in_vain_is_seen_and_can_be_aborted(void **state)
{
    (void)state;
    seen = testjob_shared(sizeof *seen);
    for (int i = 0; pairs[i]; i++) {
        *seen = 0;
        testjob_must_pass(pairs[i], free_in_vain, NULL);
    }
}

/* Channels are made and freed with their communicators. */
static int again(int rank, void *arg)
{
    int64_t x = rank, y = -1;
    dt_request_t request;
    dt_comm_t *other;

    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int i = 0; i < 100; i++) {
        NEED(dt_comm_dup(DT_WORLD, &other) == DT_OK);
        NEED(dt_irecv(other, &y, 1, DT_I64, 1 - rank, &request) == DT_OK);
        NEED(dt_send(other, &x, 1, DT_I64, 1 - rank) == DT_OK);
        NEED(dt_comm_free(other) == DT_OK && dt_wait(&request) == DT_OK && y == 1 - rank);
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void channels_end_with_their_communicators(void **state)
{
    (void)state;
    run_all(pairs, again);
}

/* ---- requests that a rank of the same host completes without a thread ---- */

static int count_threads(void)
{
    DIR *d = opendir("/proc/self/task");
    int n = 0;

    for (const struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

/* The ranks send to each other and receive, without another thread. */
static int swap(int rank, int way)
{
    static int64_t out[COUNT], in[COUNT];
    dt_request_t request[2];
    int done = 0;

    for (int i = 0; i < COUNT; i++)
        out[i] = value(rank, 1 - rank, i);
    memset(in, 0, sizeof in);
    NEED(take(in, COUNT, 1 - rank, &request[0]) == DT_OK);
    if (way == 0)
        NEED(dt_send(DT_WORLD, out, COUNT, DT_I64, 1 - rank) == DT_OK);
    else
        NEED(give(out, COUNT, 1 - rank, &request[1]) == DT_OK && dt_wait(&request[1]) == DT_OK);
    while (way == 2 && !done)
        NEED(dt_wait_for(&request[0], 0, &done) == DT_OK);
    NEED(dt_wait(&request[0]) == DT_OK);
    for (int i = 0; i < COUNT; i++)
        NEED(in[i] == value(1 - rank, rank, i));
    return 0;
}

static int swap_often(int rank, void *arg)
{
    int before;

    (void)arg;
    NEED(dt_init() == DT_OK);
    before = count_threads();
    for (int i = 0; i < MANY; i++)
        NEED(swap(rank, i % 3) == 0);
    NEED(before > 0 && count_threads() == before);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

/* If no thread can be started, a call that needs one is refused before it begins. */
static int thread_less(int rank, void *arg)
{
    static int64_t x[MOST], y[MOST];
    dt_error_info_t info = { .size = sizeof info };
    dt_request_t request = { 0 };
    char want[64];
    int done;

    (void)arg;
    NEED(dt_init() == DT_OK && forbid_threads());
    x[MOST - 1] = rank;
    NEED(give(x, MOST, 1 - rank, &request) == DT_ERR_NOMEM && request.id == 0);
    NEED(take(y, MOST, 1 - rank, &request) == DT_ERR_NOMEM && request.id == 0);
    snprintf(want, sizeof want, "rank %d (host0): dt_irecv: no thread ", rank);
    NEED(strncmp(dt_last_error(), want, strlen(want)) == 0);
    NEED(strstr(dt_last_error(), "started: Resource temporarily unavailable; raise ulimit -u"));
    NEED(dt_last_error_info(&info) == DT_OK && info.rank == rank && info.call == 0);
    NEED(info.error == EAGAIN);
    NEED(strcmp(info.operation, "recv") == 0 && strcmp(info.comm, "world") == 0);
    NEED(dt_iall_reduce(DT_WORLD, x, y, 1, DT_I64, DT_SUM, &request) == DT_ERR_NOMEM);
    NEED(dt_last_error_info(&info) == DT_OK && info.rank == rank && request.id == 0);
    NEED(strcmp(info.operation, "all-reduce") == 0 && strcmp(info.comm, "world") == 0);
    NEED(take(y, 1, 1 - rank, &request) == DT_OK);
    NEED(dt_wait_for(&request, 0.001, &done) == DT_ERR_NOMEM);
    NEED(strstr(dt_last_error(), "): dt_wait_for: no thread "));
    NEED(dt_last_error_info(&info) == DT_OK && info.rank == rank);
    NEED(strcmp(info.operation, "recv") == 0 && strcmp(info.comm, "world") == 0);
    NEED(dt_barrier(DT_WORLD) == DT_OK);
    NEED(dt_send(DT_WORLD, x, 1, DT_I64, 1 - rank) == DT_OK && dt_wait(&request) == DT_OK);
    NEED(rank || dt_send(DT_WORLD, x, MOST, DT_I64, 1) == DT_OK);
    NEED(dt_recv(DT_WORLD, y, MOST, DT_I64, 1 - rank) == DT_OK && y[MOST - 1] == 1 - rank);
    NEED(!rank || dt_send(DT_WORLD, x, MOST, DT_I64, 0) == DT_OK);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

enum { HALF = 32 * 1024 / 8 }; /* elements: a pipe holds one such request, but not two */

/* Small requests, too, may find the pipe full of earlier ones that were already waited for. */
static int thread_less_and_full(int rank, void *arg)
{
    static int64_t x[HALF];
    dt_request_t request[3] = { 0 };
    int done = 0;

    (void)arg;
    NEED(dt_init() == DT_OK && forbid_threads());
    for (int i = 0; rank && i < 3; i++)
        NEED(take(x, HALF, 0, &request[i]) == (i ? DT_ERR_NOMEM : DT_OK));
    NEED(dt_barrier(DT_WORLD) == DT_OK);
    if (!rank) {
        NEED(give(x, HALF, 1, &request[0]) == DT_OK && dt_wait(&request[0]) == DT_OK);
        NEED(give(x, HALF, 1, &request[1]) == DT_ERR_NOMEM && request[1].id == 0);
        NEED(strstr(dt_last_error(), "dt_isend: no thread "));
    }
    NEED(dt_barrier(DT_WORLD) == DT_OK);
    NEED(!rank || (dt_test(&request[0], &done) == DT_OK && done));
    NEED(dt_barrier(DT_WORLD) == DT_OK);
    NEED(rank || (give(x, HALF, 1, &request[1]) == DT_OK));
    NEED(!rank || dt_recv(DT_WORLD, x, HALF, DT_I64, 0) == DT_OK);
    NEED(dt_wait(&request[1]) == DT_OK && dt_finalize() == DT_OK);
    return 0;
}

/* A call that has begun without its thread is no failure, even if another thread will find one. */
static int thread_not_needed(int rank, void *arg)
{
    int64_t x[2] = { 0 };
    dt_request_t request;

    (void)arg;
    NEED(dt_init() == DT_OK && forbid_threads());
    NEED(rank || give(x, 2, 1, &request) == DT_OK);
    NEED(dt_barrier(DT_WORLD) == DT_OK);
    NEED(!rank || take(x, 1, 0, &request) == DT_OK);
    NEED(strcmp(dt_last_error(), "") == 0);
    NEED(dt_wait(&request) == DT_ERR_MISMATCH && dt_finalize() == DT_ERR_MISMATCH);
    return 0;
}

static void *do_nothing(void *arg)
{
    return arg;
}

/* glibc before 2.34 starts threads with clone. */
static bool clone3_is_needed(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, do_nothing, NULL) != 0)
        return true;
    pthread_join(thread, NULL);
    return false;
}

/* As under Docker before 20.10.10: then no limit has to be raised. */
static int thread_forbidden(int rank, void *arg)
{
    static int64_t x[MOST];
    dt_error_info_t info = { .size = sizeof info };
    dt_request_t request = { 0 };

    (void)arg;
    NEED(dt_init() == DT_OK && forbid(SYS_clone3, EPERM));
    if (!clone3_is_needed())
        return dt_finalize() == DT_OK ? 0 : -1;
    NEED(give(x, MOST, 1 - rank, &request) == DT_ERR_NOMEM && request.id == 0);
    NEED(strstr(dt_last_error(), "started: Operation not permitted; a seccomp filter refuses "));
    NEED(strstr(dt_last_error(), "limit") == NULL);
    NEED(dt_last_error_info(&info) == DT_OK && info.rank == rank && info.error == EPERM);
    NEED(dt_barrier(DT_WORLD) == DT_OK && dt_finalize() == DT_OK);
    return 0;
}

static void a_call_that_cannot_have_its_thread_is_refused(void **state)
{
    static int (*const bodies[])(int rank, void *arg) = { thread_less, thread_less_and_full,
                                                          thread_not_needed, thread_forbidden };

    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        testjob_must_pass("2", bodies[i], NULL);
}

static void parked_requests_need_no_thread(void **state)
{
    (void)state;
    testjob_must_pass("2", swap_often, NULL);
}

/* The sender makes no other call before the end. */
static int give_and_forget(int rank, void *arg)
{
    int64_t x = rank ? -1 : 42;
    dt_request_t request;

    (void)arg;
    NEED(dt_init() == DT_OK);
    if (rank == 0)
        NEED(give(&x, 1, 1, &request) == DT_OK);
    else
        NEED(dt_recv(DT_WORLD, &x, 1, DT_I64, 0) == DT_OK);
    NEED(x == 42 && dt_barrier(DT_WORLD) == DT_OK);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void a_parked_request_is_done_when_the_peer_has_completed_it(void **state)
{
    (void)state;
    testjob_must_pass("2", give_and_forget, NULL);
}

/* Tests and waits in every way, one after another, with calls that wait in between. */
static int ask(int rank, void *arg)
{
    int64_t x[4] = { -1, -1, -1, -1 };
    dt_request_t request[3];
    int done = 0;

    (void)arg;
    NEED(dt_init() == DT_OK);
    if (rank == 1) {
        NEED(dt_barrier(DT_WORLD) == DT_OK);
        for (int64_t i = 0; i < 5; i++)
            NEED(dt_send(DT_WORLD, &i, 1, DT_I64, 0) == DT_OK);
    } else {
        NEED(take(&x[0], 1, 1, &request[0]) == DT_OK);
        NEED(dt_test(&request[0], &done) == DT_OK && !done);
        NEED(dt_wait_for(&request[0], 0.001, &done) == DT_OK && !done);
        NEED(dt_barrier(DT_WORLD) == DT_OK);
        NEED(dt_wait(&request[0]) == DT_OK && x[0] == 0);
        NEED(take(&x[1], 1, 1, &request[1]) == DT_OK);
        NEED(dt_recv(DT_WORLD, &x[2], 1, DT_I64, 1) == DT_OK && x[1] == 1 && x[2] == 2);
        NEED(take(&x[2], 1, 1, &request[2]) == DT_OK && take(&x[3], 1, 1, &request[0]) == DT_OK);
        NEED(dt_wait(&request[0]) == DT_OK && dt_wait(&request[2]) == DT_OK && x[2] == 3);
        NEED(dt_wait(&request[1]) == DT_OK);
        NEED(x[3] == 4);
    }
    NEED(dt_barrier(DT_WORLD) == DT_OK);
    NEED(rank == 0 || dt_send(DT_WORLD, &x[0], 1, DT_I64, 0) == DT_OK);
    NEED(rank == 1 || take(&x[0], 1, 1, &request[0]) == DT_OK);
    for (done = rank; !done;)
        NEED(dt_test(&request[0], &done) == DT_OK);
    NEED(x[0] == -1 && dt_finalize() == DT_OK);
    return 0;
}

static void parked_requests_can_be_tested_and_waited_for_in_any_way(void **state)
{
    (void)state;
    run_all(pairs, ask);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_can_be_shifted_by_any_kind_of_call),
        cmocka_unit_test(channels_stay_when_thresholds_change),
        cmocka_unit_test(collectives_pass_waiting_receives),
        cmocka_unit_test(a_peer_that_is_late_holds_up_no_other),
        cmocka_unit_test(many_messages_are_matched_in_order),
        cmocka_unit_test(threads_may_send_and_receive_at_once),
        cmocka_unit_test(wrong_arguments_are_refused_at_once),
        cmocka_unit_test(a_mismatch_ends_all_waits),
        cmocka_unit_test(a_death_ends_all_waits),
        cmocka_unit_test(an_abort_ends_the_waits_on_its_communicator),
        cmocka_unit_test(a_failure_of_the_world_ends_what_a_rank_sends_to_itself),
        cmocka_unit_test(calls_under_way_are_not_left_behind),
        cmocka_unit_test(a_call_behind_a_request_is_seen_to_wait),
        cmocka_unit_test(each_wait_for_a_request_is_seen_separately),
        cmocka_unit_test(every_one_of_many_waits_is_seen_in_the_end),
        cmocka_unit_test(a_free_that_waits_in_vain_is_seen_and_can_be_aborted),
        cmocka_unit_test(channels_end_with_their_communicators),
        cmocka_unit_test(parked_requests_need_no_thread),
        cmocka_unit_test(a_call_that_cannot_have_its_thread_is_refused),
        cmocka_unit_test(a_parked_request_is_done_when_the_peer_has_completed_it),
        cmocka_unit_test(parked_requests_can_be_tested_and_waited_for_in_any_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
