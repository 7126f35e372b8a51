/* Calls that are aborted while one rank is held at some point. A rank whose call has returned owns
 * its buffers again, and the result of a call that returned DT_OK is right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/dtrun_tune.h"
#include "tests/unit/faults.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/sanitized.h"
#include "tests/unit/testjob.h"

enum {
    COUNT = 48 * 1024, /* elements of a block: several chunks, and more than one copy moves */
    RANKS = 3,         /* at most */
    ELEMENT = sizeof(int64_t),
    BYTES = RANKS * COUNT * ELEMENT,
    FEW = 8,   /* elements that are published before anything else is done */
    LOOK = 64, /* one element in this many is checked */
    HELD = 1,  /* the rank that is held */
    HOLD_MS = 25,
    SUMS = 5,       /* kinds of calls that reduce whole buffers */
    LONG_MS = 1500, /* longer than any rank waits for one that may be dead */
    MOST_JOBS = 8,
};

static const char STAGED[] = "1G", COPIED[] = "1", TRIED[] = "0";

static struct shared {
    _Atomic int returned, well; /* ranks except the one that is held; of these, those with DT_OK */
    bool held, all_well;        /* all of them before the abort */
    _Atomic bool aborted;
} * shared;

static dt_comm_t *comm;
static int64_t *in, *out;
static pthread_t aborter;
static int hold_ms;
static bool waits_for_writers, comes_late;

/* ---- the calls ---- */

static int64_t given(int rank, size_t i)
{
    return 1000003 * rank + (int64_t)i;
}

static int64_t sum_at(size_t i)
{
    int64_t sum = 0;

    for (int rank = 0; rank < dt_size(); rank++)
        sum += given(rank, i);
    return sum;
}

static dt_result_t all_reduce(int root)
{
    (void)root;
    return dt_all_reduce(comm, in, out, COUNT, DT_I64, DT_SUM);
}

static dt_result_t all_reduce_few(int root)
{
    (void)root;
    return dt_all_reduce(comm, in, out, FEW, DT_I64, DT_SUM);
}

static dt_result_t all_reduce_in_place(int root)
{
    (void)root;
    memcpy(out, in, COUNT * ELEMENT);
    return dt_all_reduce(comm, DT_IN_PLACE, out, COUNT, DT_I64, DT_SUM);
}

static dt_result_t reduce(int root)
{
    return dt_reduce(comm, in, out, COUNT, DT_I64, DT_SUM, root);
}

static bool has_sum(int root)
{
    for (size_t i = 0; (root < 0 || dt_rank() == root) && i < COUNT; i += LOOK) {
        if (out[i] != sum_at(i))
            return false;
    }
    return true;
}

/* Whether the first of the checked elements are right. */
static bool has_few_sums(int root)
{
    (void)root;
    return out[0] == sum_at(0);
}

static dt_result_t reduce_scatter(int root)
{
    (void)root;
    return dt_reduce_scatter(comm, in, out, COUNT, DT_I64, DT_SUM);
}

static bool has_part_of_sum(int root)
{
    (void)root;
    for (size_t i = 0; i < COUNT; i += LOOK) {
        if (out[i] != sum_at((size_t)dt_rank() * COUNT + i))
            return false;
    }
    return true;
}

static dt_result_t broadcast(int root)
{
    if (dt_rank() == root)
        memcpy(out, in, COUNT * ELEMENT);
    return dt_broadcast(comm, out, COUNT, DT_I64, root);
}

/* What "from" had at an offset. */
static bool has(size_t block, int from, size_t offset)
{
    for (size_t i = 0; i < COUNT; i += LOOK) {
        if (out[block * COUNT + i] != given(from, offset + i))
            return false;
    }
    return true;
}

static bool has_roots(int root)
{
    return has(0, root, 0);
}

static dt_result_t all_gather(int root)
{
    (void)root;
    return dt_all_gather(comm, in, out, COUNT, DT_I64);
}

static dt_result_t gather(int root)
{
    return dt_gather(comm, in, out, COUNT, DT_I64, root);
}

static bool has_all(int root)
{
    for (int rank = 0; (root < 0 || dt_rank() == root) && rank < dt_size(); rank++) {
        if (!has((size_t)rank, rank, 0))
            return false;
    }
    return true;
}

static dt_result_t scatter(int root)
{
    return dt_scatter(comm, in, out, COUNT, DT_I64, root);
}

static bool has_own_part(int root)
{
    return has(0, root, (size_t)dt_rank() * COUNT);
}

static dt_result_t all_to_all(int root)
{
    (void)root;
    return dt_all_to_all(comm, in, out, COUNT, DT_I64);
}

static bool has_parts(int root)
{
    (void)root;
    for (int rank = 0; rank < dt_size(); rank++) {
        if (!has((size_t)rank, rank, (size_t)dt_rank() * COUNT))
            return false;
    }
    return true;
}

/* root is the sender. */
static dt_result_t send_or_receive(int root)
{
    if (dt_rank() > 1)
        return DT_OK;
    return dt_rank() == root ? dt_send(comm, in, 2 * COUNT, DT_I64, 1 - root)
                             : dt_recv(comm, out, 2 * COUNT, DT_I64, root);
}

static bool has_received(int root)
{
    return dt_rank() > 1 || dt_rank() == root || (has(0, root, 0) && has(1, root, COUNT));
}

static dt_comm_t *child;

static dt_result_t dup_it(int root)
{
    (void)root;
    return dt_comm_dup(comm, &child);
}

static dt_result_t split_off(int root)
{
    return dt_comm_split(comm, dt_rank() == root ? DT_UNDEFINED : 0, 0, &child);
}

/* Other ranks may have no data. Then those with data do not wait for them. */
static bool is_left(int root)
{
    dt_result_t r = dt_rank() == root ? DT_OK : dt_comm_free(child);

    return r == DT_OK || r == DT_ERR_ABORTED;
}

static const struct kind {
    const char *name;
    dt_result_t (*make)(int root);
    bool (*is_right)(int root);
    int root;
} kinds[] = {
    { "all-reduce", all_reduce, has_sum, -1 },
    { "all-reduce of few", all_reduce_few, has_few_sums, -1 },
    { "all-reduce in place", all_reduce_in_place, has_sum, -1 },
    { "reduce to the others", reduce, has_sum, 0 },
    { "reduce to who is held", reduce, has_sum, HELD },
    { "reduce-scatter", reduce_scatter, has_part_of_sum, -1 },
    { "broadcast from another", broadcast, has_roots, 0 },
    { "broadcast from who is held", broadcast, has_roots, HELD },
    { "all-gather", all_gather, has_all, -1 },
    { "gather to another", gather, has_all, 0 },
    { "gather to who is held", gather, has_all, HELD },
    { "scatter from another", scatter, has_own_part, 0 },
    { "scatter from who is held", scatter, has_own_part, HELD },
    { "all-to-all", all_to_all, has_parts, -1 },
    { "send from another", send_or_receive, has_received, 0 },
    { "send from who is held", send_or_receive, has_received, HELD },
    { "dup", dup_it, is_left, -1 },
    { "split without who is held", split_off, is_left, HELD },
};

/* ---- ranks ---- */

struct plan {
    const char *hosts;
    bool mapped;
    bool no_cma;
    const char *fold; /* of the threshold shm_direct_reduce */
    const struct kind *kind;
    int hold_ms;
    bool late;
};

static void *abort_it(void *arg)
{
    bool done = dt_comm_abort(comm) == DT_OK;

    shared->aborted = true;
    return done ? arg : NULL;
}

static bool others_have_returned(void)
{
    return shared->returned == dt_size() - 1;
}

static bool all_is_over(void)
{
    return others_have_returned() && shared->aborted;
}

static void wait_for(bool (*what)(void))
{
    int64_t end = testjob_now_us() + 1000 * hold_ms;

    while (!what() && testjob_now_us() < end)
        nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
}

/* Meanwhile the calls of the others end, unless they wait for this rank. It may hold a lock that
 * the abort needs, which then comes later. */
static void hold(void)
{
    shared->held = true;
    if (comes_late)
        wait_for(others_have_returned);
    shared->all_well = shared->well == dt_size() - 1;
    if (pthread_create(&aborter, NULL, abort_it, shared) != 0)
        abort();
    wait_for(all_is_over);
}

static void fill(int64_t *buf, int64_t (*value)(int rank, size_t i), size_t step)
{
    for (size_t i = 0; i < RANKS * COUNT; i += step)
        buf[i] = value(dt_rank(), i);
}

static int64_t nothing(int rank, size_t i)
{
    (void)rank;
    (void)i;
    return -1;
}

static int64_t mark(int rank, size_t i)
{
    return ~given(rank, 7 * i);
}

/* Makes a call that is held at its k-th passage. */
static int make(const struct kind *kind, const char *fold, unsigned k)
{
    char lines[64];

    void *aborted = shared;
    dt_result_t r;

    fill(in, given, LOOK);
    fill(out, nothing, LOOK);
    shared->returned = shared->well = 0;
    shared->held = shared->all_well = false;
    shared->aborted = false;
    NEED(dt_comm_dup(DT_WORLD, &comm) == DT_OK);
    snprintf(lines, sizeof lines, "shm_direct_reduce = %s%s", fold,
             waits_for_writers && fold == STAGED ? "\nshm_huge = 1"
                                                 : ""); /* held while it writes */
    NEED(dt_comm_tune(comm, lines) == DT_OK);
    NEED(dt_barrier(DT_WORLD) ==
         DT_OK); /* an abort would end the tuning of ranks that are still in it */
    if (dt_rank() == HELD)
        faults_arm_passage(k, hold);
    r = kind->make(kind->root);
    if (dt_rank() == HELD)
        faults_disarm();
    if (dt_rank() == HELD && shared->held)
        NEED(pthread_join(aborter, &aborted) == 0 && aborted);
    NEED(r == DT_ERR_ABORTED || (r == DT_OK && kind->is_right(kind->root)));
    NEED(r == DT_OK || dt_rank() != HELD || !shared->all_well);
    fill(in, mark, LOOK);
    fill(out, mark, LOOK);
    shared->well += dt_rank() != HELD && r == DT_OK;
    shared->returned += dt_rank() != HELD;
    NEED(dt_barrier(DT_WORLD) == DT_OK);
    for (size_t i = 0; i < RANKS * COUNT; i += LOOK)
        NEED(in[i] == mark(dt_rank(), i) && out[i] == mark(dt_rank(), i));
    NEED(dt_comm_free(comm) == (shared->held ? DT_ERR_ABORTED : DT_OK));
    NEED(dt_barrier(DT_WORLD) == DT_OK);
    return 0;
}

static int make_often(int rank, void *arg)
{
    const struct plan *p = arg;
    void *memory;
    bool held;

    (void)rank;
    if (p->no_cma)
        setenv("DTRUN_CMA", "0", 1);
    NEED(dt_init() == DT_OK);
    if (p->mapped)
        NEED(dt_mem_alloc(DT_WORLD, 2 * BYTES, &memory) == DT_OK);
    else
        NEED((memory = malloc(2 * BYTES)) != NULL);
    in = memory;
    out = in + RANKS * COUNT;
    fill(in, given, 1);
    hold_ms = p->hold_ms;
    comes_late = p->late;
    waits_for_writers = p->hold_ms == HOLD_MS;
    for (unsigned k = 1; k == 1 || held; k += 1 + SANITIZED + k / (waits_for_writers ? 6 : 2)) {
        NEED(make(p->kind, p->fold, k) == 0);
        held = shared->held;
        NEED(dt_barrier(DT_WORLD) == DT_OK);
    }
    NEED(p->mapped ? dt_mem_free(memory) == DT_OK : (free(memory), true));
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static int run(const struct plan *p)
{
    struct testjob_plan plan = { .hosts = p->hosts,
                                 .body = make_often,
                                 .arg = (void *)(uintptr_t)p };

    shared = testjob_shared(sizeof *shared);
    if (testjob_pass(&plan) == 0)
        return 0;
    fprintf(stderr, "%s among %s%s%s%s, shm_direct_reduce = %s\n", p->kind->name, p->hosts,
            p->mapped ? ", mapped" : "", p->no_cma ? ", through pipes" : "",
            p->late ? ", late" : "", p->fold);
    return 1;
}

/* Jobs run in parallel, because they mostly wait. */
static int running, failed;

static void end_one(void)
{
    int status;

    assert_true(wait(&status) > 0);
    running--;
    failed += status != 0;
}

static void begin(const struct plan *p)
{
    pid_t pid;

    failed = running ? failed : 0;
    if (running == MOST_JOBS)
        end_one();
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(run(p));
    running++;
}

static void end_all(void)
{
    while (running)
        end_one();
    assert_int_equal(failed, 0);
}

static void run_all(bool mapped, bool no_cma, bool late)
{
    static const char *const placements[] = { "2", "3" };

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        for (size_t p = late; p < 2; p++)
            begin(
                &(struct plan){ placements[p], mapped, no_cma, STAGED, &kinds[i], HOLD_MS, late });
    }
    end_all();
}

static void run_sums(const char *fold, bool late)
{
    static const char *const placements[] = { "2", "3" };

    for (size_t i = 0; i < SUMS; i++) {
        for (size_t p = late; p < 2; p++)
            begin(&(struct plan){ placements[p], false, false, fold, &kinds[i], HOLD_MS, late });
    }
    end_all();
}

static void buffers_belong_to_the_program_again(void **state)
{
    (void)state;
    run_all(false, false, false);
    run_all(false, true, false);
}

static void shared_buffers_belong_to_the_program_again(void **state)
{
    (void)state;
    run_all(true, false, false);
}

static void buffers_that_the_kernel_copies_belong_to_the_program_again(void **state)
{
    (void)state;
    run_sums(COPIED, false);
    run_sums(TRIED, false);
}

static void a_call_that_succeeded_on_all_others_succeeds(void **state)
{
    (void)state;
    run_all(false, false, true);
    run_sums(COPIED, true);
    run_all(true, false, true);
}

/* The others do not wait for a rank that stands still so long, but it writes nothing when it goes
 * on. */
static void a_rank_that_stands_still_is_too_late(void **state)
{
    static const int some[] = { 0, 14, 15 };

    (void)state;
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        for (int mapped = 0; mapped < 2; mapped++)
            begin(&(struct plan){ "2", mapped, false, mapped ? STAGED : COPIED, &kinds[some[i]],
                                  LONG_MS, false });
    }
    end_all();
}

static void abort_all(void)
{
    shared->aborted = dt_comm_abort(DT_WORLD) == DT_OK;
}

/* Ends the job at its k-th passage while a new communicator is being made. */
static int end_on_the_way(int rank, void *arg)
{
    dt_result_t r;

    (void)rank;
    shared->aborted = false;
    NEED(dt_init() == DT_OK);
    faults_arm_passage(*(const unsigned *)arg, abort_all);
    r = dt_comm_dup(DT_WORLD, &comm);
    faults_disarm();
    NEED(r == DT_ERR_ABORTED || r == DT_OK);
    NEED(dt_barrier(r == DT_OK ? comm : DT_WORLD) == (shared->aborted ? DT_ERR_ABORTED : DT_OK));
    shared->well += shared->aborted && r == DT_OK;
    return 0;
}

static void a_rank_that_has_not_joined_a_new_communicator_gets_none(void **state)
{
    static const int in_it = 2; /* passages inside the new communicator */

    (void)state;
    shared = testjob_shared(sizeof *shared);
    shared->aborted = true;
    for (unsigned k = 1; shared->aborted; k++) {
        struct testjob_plan plan = { .hosts = "1", .body = end_on_the_way, .arg = &k };
        struct testjob_result result;

        assert_int_equal(testjob_run(&plan, &result), 0);
        assert_int_equal(result.ranks[0].status, 0);
    }
    assert_in_range(shared->well, 0, in_it);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_belong_to_the_program_again),
        cmocka_unit_test(shared_buffers_belong_to_the_program_again),
        cmocka_unit_test(buffers_that_the_kernel_copies_belong_to_the_program_again),
        cmocka_unit_test(a_call_that_succeeded_on_all_others_succeeds),
        cmocka_unit_test(a_rank_that_stands_still_is_too_late),
        cmocka_unit_test(a_rank_that_has_not_joined_a_new_communicator_gets_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
