/* Calls between two ranks, on one host and on two. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "runtime/dtrun.h"
#include "tests/unit/checks.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/testjob.h"

enum {
    COUNT_MAX = 200001,
    OVERHEAR_US = 200000, /* how often libdtrun looks for frames of other calls (tcp/flow.c) */
};

static void run_all(const char *const *placements, int (*body)(int rank, void *arg))
{
    assert_int_equal(testjob_pass_all(placements, body), 0);
}

static const char *const several[] = { "2", "4", "1 1", "3 1", "2 1 2", NULL };
static const char *const pairs[] = { "2", "1 1", NULL };

static uint16_t value(int from, int to, size_t i)
{
    return (uint16_t)((size_t)(from * 31 + to) + i * 7);
}

/* Every rank sends to every other. All go through the pairs in one order, so none deadlocks. */
static int exchange(dt_comm_t *comm, size_t count)
{
    static uint8_t memory[2 * COUNT_MAX + 3];
    int me = dt_comm_rank(comm), n = dt_comm_size(comm);
    uint16_t *buf = (uint16_t *)(void *)(memory + 1); /* misaligned */

    for (int a = 0; a < n; a++) {
        for (int b = 0; b < n; b++) {
            if (a == b || (a != me && b != me))
                continue;
            memset(memory, 0xa5, sizeof memory);
            for (size_t i = 0; a == me && i < count; i++)
                memcpy(memory + 1 + 2 * i, &(uint16_t){ value(a, b, i) }, 2);
            NEED((a == me ? dt_send(comm, buf, count, DT_U16, b)
                          : dt_recv(comm, buf, count, DT_U16, a)) == DT_OK);
            for (size_t i = 0; i < count; i++)
                NEED(memcmp(memory + 1 + 2 * i, &(uint16_t){ value(a, b, i) }, 2) == 0);
            NEED(memory[0] == 0xa5 && memory[1 + 2 * count] == 0xa5);
        }
    }
    return 0;
}

static int exchange_all(int rank, void *arg)
{
    static const size_t counts[] = { 0, 1, 16, 17, 2047, 40000, COUNT_MAX };
    dt_comm_t *other;
    int64_t x = rank;

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_comm_split(DT_WORLD, 0, -rank, &other) == DT_OK);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        NEED(exchange(DT_WORLD, counts[i]) == 0);
        NEED(exchange(other, counts[i]) == 0);
        NEED(dt_all_reduce(other, DT_IN_PLACE, &x, 1, DT_I64, DT_MAX) == DT_OK);
        NEED(x == dt_size() - 1);
    }
    NEED(dt_comm_free(other) == DT_OK);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void every_rank_sends_to_every_other(void **state)
{
    (void)state;
    run_all(several, exchange_all);
}

/* Ranks 0 and 1 make calls of their own between the calls of all ranks. */
static int send_between_barriers(int rank, void *arg)
{
    int64_t x = rank, got = -1;

    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int i = 0; i < 50; i++) {
        if (rank == 0)
            NEED(dt_send(DT_WORLD, &x, 1, DT_I64, 1) == DT_OK);
        if (rank == 1)
            NEED(dt_recv(DT_WORLD, &got, 1, DT_I64, 0) == DT_OK && got == 0);
        if (i % 10 == 0)
            NEED(dt_barrier(DT_WORLD) == DT_OK);
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void calls_of_two_ranks_do_not_disturb_those_of_all(void **state)
{
    (void)state;
    run_all(several, send_between_barriers);
}

static int misuse(int rank, void *arg)
{
    int64_t x = rank;
    int peer = 1 - rank;

    (void)arg;
    NEED(dt_send(DT_WORLD, &x, 1, DT_I64, 1) == DT_ERR_STATE);
    NEED(dt_init() == DT_OK);
    NEED(dt_send(DT_WORLD, &x, 1, DT_I64, -2) == DT_ERR_ARG);
    NEED(dt_send(DT_WORLD, &x, 1, DT_I64, 2) == DT_ERR_ARG);
    NEED(dt_recv(DT_WORLD, &x, 1, DT_I64, -1) == DT_ERR_ARG);
    NEED(dt_recv(DT_WORLD, NULL, 1, DT_I64, peer) == DT_ERR_ARG);
    NEED(dt_recv(DT_WORLD, &x, SIZE_MAX / 2, DT_I64, peer) == DT_ERR_ARG);
    NEED(dt_send(DT_WORLD, DT_IN_PLACE, 1, DT_I64, peer) == DT_ERR_ARG);
    NEED((rank ? dt_recv(DT_WORLD, &x, 1, DT_I64, 0) : dt_send(DT_WORLD, &x, 1, DT_I64, 1)) ==
         DT_OK);
    NEED(x == 0 && dt_finalize() == DT_OK);
    return 0;
}

static void misuse_is_an_error_and_later_calls_work(void **state)
{
    (void)state;
    run_all(pairs, misuse);
}

static int (*mismatched_call)(int rank, int64_t *buf);

static int other_count(int rank, int64_t *buf)
{
    return rank ? dt_recv(DT_WORLD, buf, 40000, DT_I64, 0)
                : dt_send(DT_WORLD, buf, 50000, DT_I64, 1);
}

static int other_type(int rank, int64_t *buf)
{
    return rank ? dt_recv(DT_WORLD, buf, 1, DT_F64, 0) : dt_send(DT_WORLD, buf, 1, DT_I64, 1);
}

static int disagree(int rank, void *arg)
{
    static int64_t buf[50000];

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(mismatched_call(rank, buf) == DT_ERR_MISMATCH);
    NEED(strstr(dt_last_error(), "called send of") && strstr(dt_last_error(), "called recv of"));
    NEED(buf[0] == 0);
    NEED(dt_finalize() == DT_ERR_MISMATCH);
    return 0;
}

static void a_mismatch_is_an_error_on_both_ranks(void **state)
{
    int (*const calls[])(int, int64_t *) = { other_count, other_type };

    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        mismatched_call = calls[i];
        run_all(pairs, disagree);
    }
}

/* Rank 0 waits for rank 1 until libdtrun also reads what rank 2 has sent for a later call. */
static int receive_from_a_late_rank(int rank, void *arg)
{
    int64_t x = rank;

    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int i = 0; i < 3 && rank < 2; i++)
        NEED((rank ? dt_send(DT_WORLD, &x, 1, DT_I64, 0) : dt_recv(DT_WORLD, &x, 1, DT_I64, 1)) ==
             DT_OK);
    if (rank == 1)
        usleep(3 * OVERHEAR_US);
    for (int peer = 1; peer < 3; peer++) {
        if (rank == 0)
            NEED(dt_recv(DT_WORLD, &x, 1, DT_I64, peer) == DT_OK && x == peer);
        else if (rank == peer)
            NEED(dt_send(DT_WORLD, &x, 1, DT_I64, 0) == DT_OK);
    }
    NEED(dt_broadcast(DT_WORLD, &x, 1, DT_I64, 0) == DT_OK && x == 2);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void a_rank_waits_for_a_late_one_while_another_has_sent(void **state)
{
    static const char *const hosts[] = { "1 1 1", NULL };

    (void)state;
    run_all(hosts, receive_from_a_late_rank);
}

/* Rank 1 ends instead of making its call. */
static int send_to_a_dead_rank(int rank, void *arg)
{
    static int64_t buf[COUNT_MAX];

    NEED(dt_init() == DT_OK);
    testjob_meet(arg, 2);
    if (rank == 1)
        _exit(0);
    NEED(dt_send(DT_WORLD, buf, COUNT_MAX, DT_I64, 1) == DT_ERR_PEER);
    NEED(dt_finalize() == DT_ERR_PEER);
    return 0;
}

static void the_end_of_the_peer_ends_a_send(void **state)
{
    struct testjob_result result;

    (void)state;
    for (const char *const *p = pairs; *p; p++) {
        struct testjob_plan plan = { .hosts = *p, .body = send_to_a_dead_rank };

        plan.arg = testjob_shared(sizeof(_Atomic int));
        assert_int_equal(testjob_run(&plan, &result), 0);
        assert_int_equal(result.ranks[0].status, 0);
    }
}

/* ---- to itself ---- */

enum { IN_A_ROW = 3 };

/* The first of the two calls does not wait. */
static int pass_to_self(dt_comm_t *comm, size_t count, bool receive_first)
{
    static uint16_t from[COUNT_MAX], to[COUNT_MAX + 1];
    int me = dt_comm_rank(comm);
    dt_request_t r;

    memset(to, 0xa5, sizeof to);
    for (size_t i = 0; i < count; i++)
        from[i] = value(me, (int)count, i);
    if (receive_first) {
        NEED(dt_irecv(comm, to, count, DT_U16, me, &r) == DT_OK);
        NEED(dt_send(comm, from, count, DT_U16, me) == DT_OK);
    } else {
        NEED(dt_isend(comm, from, count, DT_U16, me, &r) == DT_OK);
        NEED(dt_recv(comm, to, count, DT_U16, me) == DT_OK);
    }
    NEED(dt_wait(&r) == DT_OK);
    NEED(memcmp(from, to, 2 * count) == 0 && to[count] == 0xa5a5);
    return 0;
}

static int pass_in_order(dt_comm_t *comm)
{
    int64_t from[IN_A_ROW] = { 5, 6, 7 }, to[IN_A_ROW] = { 0 };
    dt_request_t sends[IN_A_ROW], recvs[IN_A_ROW];
    int me = dt_comm_rank(comm);

    for (int i = 0; i < IN_A_ROW; i++)
        NEED(dt_isend(comm, &from[i], 1, DT_I64, me, &sends[i]) == DT_OK);
    for (int i = 0; i < IN_A_ROW; i++)
        NEED(dt_irecv(comm, &to[i], 1, DT_I64, me, &recvs[i]) == DT_OK);
    NEED(dt_wait_all(recvs, IN_A_ROW) == DT_OK && dt_wait_all(sends, IN_A_ROW) == DT_OK);
    NEED(memcmp(from, to, sizeof from) == 0);
    return 0;
}

static int send_to_self(int rank, void *arg)
{
    static const size_t counts[] = { 0, 1, 17, 2047, 40000, COUNT_MAX };
    dt_comm_t *other;
    int64_t x = rank;

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_comm_split(DT_WORLD, rank % 2, -rank, &other) == DT_OK);
    for (size_t i = 0; i < 2 * sizeof counts / sizeof *counts; i++) {
        NEED(pass_to_self(DT_WORLD, counts[i / 2], i % 2) == 0);
        NEED(pass_to_self(other, counts[i / 2], i % 2) == 0);
        NEED(dt_all_reduce(DT_WORLD, DT_IN_PLACE, &x, 1, DT_I64, DT_MAX) == DT_OK);
        NEED(x == dt_size() - 1);
    }
    NEED(pass_in_order(DT_WORLD) == 0 && pass_in_order(other) == 0);
    NEED(dt_comm_free(other) == DT_OK);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void a_rank_sends_to_itself(void **state)
{
    static const char *const placements[] = { "1", "2", "1 1", "3 1", NULL };

    (void)state;
    run_all(placements, send_to_self);
}

static int mismatch_with_self(int rank, void *arg)
{
    int64_t from[6] = { 0 }, to[6] = { -1, -1, -1, -1, -1, -1 };
    dt_comm_t *other;
    dt_request_t r;

    (void)arg;
    NEED(dt_init() == DT_OK && dt_comm_dup(DT_WORLD, &other) == DT_OK);
    NEED(dt_isend(other, from, 5, DT_I64, rank, &r) == DT_OK);
    NEED(dt_recv(other, to, 6, DT_I64, rank) == DT_ERR_MISMATCH && to[0] == -1);
    NEED(strstr(dt_last_error(), "called recv of 6 i64 from rank"));
    NEED(dt_wait(&r) == DT_ERR_MISMATCH);
    NEED(dt_comm_abort(other) == DT_OK && dt_finalize() == DT_OK);
    return 0;
}

static void sends_of_a_rank_to_itself_must_match(void **state)
{
    (void)state;
    run_all(pairs, mismatch_with_self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKS("6, 10", a_rank_sends_to_itself),
        cmocka_unit_test(sends_of_a_rank_to_itself_must_match),
        CHECKS("6, 10", every_rank_sends_to_every_other),
        cmocka_unit_test(calls_of_two_ranks_do_not_disturb_those_of_all),
        cmocka_unit_test(misuse_is_an_error_and_later_calls_work),
        CHECKS("27, 28, 30", a_mismatch_is_an_error_on_both_ranks),
        cmocka_unit_test(a_rank_waits_for_a_late_one_while_another_has_sent),
        cmocka_unit_test(the_end_of_the_peer_ends_a_send),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
