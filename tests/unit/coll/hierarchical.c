/* Collectives in which several ranks of a host work for each other and talk to other hosts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/api/context.h"
#include "runtime/dtrun_tune.h"
#include "tests/unit/checks.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/reference.h"
#include "tests/unit/testjob.h"

struct job {
    const char *hosts;
    uint32_t n_leaders; /* number of leaders; 0: only the first rank talks */
};

static int begin(const struct job *j, bool whatever_the_size)
{
    struct dt_comm *c;

    NEED(dt_init() == DT_OK);
    NEED(dt_context_enter("test", DT_WORLD, &c) == DT_OK);
    NEED(j->n_leaders ? c->hierarchical.n_leaders == j->n_leaders : c->hierarchical.n_leaders < 2);
    if (whatever_the_size)
        c->tuning.net_leader = 0;
    dt_context_leave(c);
    return 0;
}

/* Counts of one chunk and of several, the last of which have no block for some leaders and
 * hosts. */
static int all_sizes(int rank, void *arg)
{
    static const size_t counts[] = { 0, 1, 33, 1000, 4097, 65537, 300001 };
    static const struct {
        dt_dtype_t dtype;
        dt_op_t op;
    } kinds[] = { { DT_F32, DT_SUM }, { DT_F16, DT_AVG },  { DT_BF16, DT_SUM },
                  { DT_U8, DT_MAX },  { DT_F64, DT_PROD }, { DT_I64, DT_BXOR } };
    const struct job *j = arg;

    (void)rank;
    NEED(begin(j, true) == 0);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            if (counts[c] < 5000 || (c + k) % 3 == 0)
                NEED(reference_try(j->hosts, counts[c], kinds[k].dtype, kinds[k].op, (c + k) % 3) ==
                     0);
        }
    }
    NEED(reference_try(j->hosts, 1200007 / (size_t)dt_size(), DT_F32, DT_AVG, 1) == 0);
    NEED(dt_comm_tune(DT_WORLD, "shm_huge = 1\nnet_leader = 0") == DT_OK); /* past the caches */
    NEED(reference_try(j->hosts, 300001, DT_F32, DT_SUM, 2) == 0);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

/* Without the ring, only the order of ranks and hosts counts. */
static void leaders_combine_in_rank_order(void **state)
{
    static const struct job jobs[] = {
        { "2 2", 2 }, { "4 3", 3 }, { "@102102", 2 }, { "2 2 2 2 2 2", 2 }, { "10 10", 7 },
    };

    (void)state;
    reference_inputs(false);
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++)
        testjob_must_pass(jobs[i].hosts, all_sizes, &jobs[i]);
}

/* Sums of integers do not depend on the order. */
static void other_placements_have_one_leader(void **state)
{
    static const struct job jobs[] = {
        { "3 1 2", 0 }, { "1 7", 0 }, { "2 2 2 2 2 2 2 2 2", 0 }, { "6", 0 }
    };

    (void)state;
    reference_inputs(true);
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++)
        testjob_must_pass(jobs[i].hosts, all_sizes, &jobs[i]);
}

/* Counts around the built-in thresholds. */
static int around_the_threshold(int rank, void *arg)
{
    const struct job *j = arg;
    struct dt_comm *c;
    size_t limit;

    (void)rank;
    NEED(begin(j, false) == 0);
    NEED(dt_context_enter("test", DT_WORLD, &c) == DT_OK);
    limit = c->tuning.net_leader * c->hierarchical.n_leaders / sizeof(float);
    dt_context_leave(c);
    for (size_t count = limit - 2; count < limit + 2; count++)
        NEED(reference_try(j->hosts, count, DT_F32, DT_SUM, 0) == 0);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void the_threshold_does_not_change_results(void **state)
{
    static const struct job two = { "2 2", 2 }, three = { "2 3 2", 2 };

    (void)state;
    reference_inputs(false);
    testjob_must_pass(two.hosts, around_the_threshold, &two);
    reference_inputs(true);
    testjob_must_pass(three.hosts, around_the_threshold, &three);
}

/* The ranks of the communicator are in another order than in the job, and other ranks of its hosts
 * are not in it. */
static int subsets(int rank, void *arg)
{
    enum { COUNT = 300000 };
    static int32_t buf[COUNT];
    dt_comm_t *some;
    int n;

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_comm_split(DT_WORLD, rank == 2, -rank, &some) == DT_OK);
    n = dt_comm_size(some);
    for (int again = 0; again < 3; again++) {
        for (int i = 0; i < COUNT; i++)
            buf[i] = i + dt_comm_rank(some);
        NEED(dt_all_reduce(some, DT_IN_PLACE, buf, COUNT, DT_I32, DT_SUM) == DT_OK);
        for (int i = 0; i < COUNT; i++)
            NEED(buf[i] == n * i + n * (n - 1) / 2);
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void subsets_have_leaders_of_their_own(void **state)
{
    (void)state;
    testjob_must_pass("3 2", subsets, NULL);
}

enum { NOBODY = -1 };

static _Atomic int *stopped; /* the rank that stops itself */

/* A leader that is late makes the others wait, which sleep meanwhile, and then goes on. */
static int late(int rank, void *arg)
{
    enum { COUNT = 2000000 };
    static int32_t buf[COUNT];

    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int turn = 0; turn < dt_size(); turn++) {
        for (int i = 0; i < COUNT; i++)
            buf[i] = i ^ rank;
        if (turn == rank) {
            *stopped = rank;
            raise(SIGSTOP);
            *stopped = NOBODY;
        }
        NEED(dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, COUNT, DT_I32, DT_BXOR) == DT_OK);
        for (int i = 0; i < COUNT; i++)
            NEED(buf[i] == 0);
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

/* Only this wakes it: LeakSanitizer stops ranks that end, and would wait for ever for one that
 * runs. */
static void wake(struct testjob *job, int ms)
{
    int rank = *stopped;

    if (ms % 100 == 0 && rank != NOBODY)
        testjob_kill(job, rank, SIGCONT);
}

static void the_others_wait_for_a_late_leader(void **state)
{
    struct testjob_plan plan = { .hosts = "2 2", .body = late, .on_tick = wake };

    (void)state;
    stopped = testjob_shared(sizeof *stopped);
    *stopped = NOBODY;
    assert_int_equal(testjob_pass(&plan), 0);
}

/* ---- all-gather ---- */

/* Gathers once into a separate buffer and once in place, with a canary after the last block. */
static int gather(const size_t *counts, int rank)
{
    size_t total = 0, mine = 0, at = 0;
    int32_t *in = calloc(counts[rank] + 1, sizeof *in), *all, *want;

    for (int i = 0; i < dt_size(); total += counts[i++])
        mine = i == rank ? total : mine;
    all = calloc(total + 1, sizeof *all);
    want = calloc(total + 1, sizeof *want);
    for (int i = 0; i < dt_size(); at += counts[i++])
        reference_fill(want + at, i, counts[i], DT_I32, DT_SUM);
    all[total] = want[total] = -5;
    reference_fill(in, rank, counts[rank], DT_I32, DT_SUM);
    for (int again = 0; again < 2; again++) {
        if (again) {
            memset(all, 0, total * sizeof *all);
            memcpy(all + mine, in, counts[rank] * sizeof *in);
        }
        NEED(dt_all_gatherv(DT_WORLD, again ? DT_IN_PLACE : in, all, counts, DT_I32) == DT_OK);
        NEED(memcmp(all, want, (total + 1) * sizeof *all) == 0);
    }
    free(in);
    free(all);
    free(want);
    return 0;
}

/* Blocks of one frame and of several, of all ranks and of some. */
static int gathers(int rank, void *arg)
{
    static const size_t mosts[] = { 0, 1, 1000, 32768, 32769, 150001 };
    size_t counts[TESTJOB_RANKS] = { 0 };
    struct dt_comm *c;

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_context_enter("test", DT_WORLD, &c) == DT_OK);
    c->tuning.net_leader = 0;
    dt_context_leave(c);
    for (size_t m = 0; m < sizeof mosts / sizeof *mosts; m++) {
        for (int kind = 0; kind < 3; kind++) {
            for (int i = 0; i < dt_size(); i++)
                counts[i] = kind == 0                         ? mosts[m]
                            : kind == 1                       ? mosts[m] * (size_t)(i % 3) / 2
                            : i == dt_size() - 1 - (int)m % 2 ? mosts[m]
                                                              : 0;
            NEED(gather(counts, rank) == 0);
        }
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void every_block_reaches_every_rank(void **state)
{
    static const char *const placements[] = { "2 2",     "3 1 2", "1 7",
                                              "@102102", "2 3 2", "2 1 1 1 1 1 1 1 2" };

    (void)state;
    reference_inputs(false);
    for (size_t i = 0; i < sizeof placements / sizeof *placements; i++)
        testjob_must_pass(placements[i], gathers, NULL);
}

/* For hosts of 1 to 1000 ranks the memory for each rank neither only grows nor only shrinks with
 * their number. */
static void rounds_fit_into_the_memory_of_every_host(void **state)
{
    struct dt_leaders leaders = { .n = 2 };

    (void)state;
    for (uint32_t i = 1; i <= 1000; i += 9) {
        for (uint32_t k = 1; k <= 1000; k += 9) {
            const struct dt_host_ranks host_ranks = { .first = (uint32_t[]){ 0, i, i + k } };
            struct dt_hierarchical t = { .leaders = &leaders, .host_ranks = &host_ranks };

            dt_hierarchical_init(&t);
            assert_in_range(t.round, 1, dt_hostshm_room(i) / 4);
            assert_in_range(t.round, 1, dt_hostshm_room(k) / 4);
            assert_in_range(t.n_leaders, 1, i < k ? i : k);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKS("1, 7, 10, 19", leaders_combine_in_rank_order),
        cmocka_unit_test(other_placements_have_one_leader),
        cmocka_unit_test(rounds_fit_into_the_memory_of_every_host),
        cmocka_unit_test(the_threshold_does_not_change_results),
        cmocka_unit_test(subsets_have_leaders_of_their_own),
        cmocka_unit_test(the_others_wait_for_a_late_leader),
        CHECKS("18", every_block_reaches_every_rank),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
