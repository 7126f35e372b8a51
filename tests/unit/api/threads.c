/* Several threads of a rank are in the library at the same time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/ticketlock.h"
#include "runtime/dtrun.h"
#include "runtime/wire/hostshm.h"
#include "tests/unit/checks.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/sanitized.h"
#include "tests/unit/testjob.h"

enum { THREADS = 4, CALLS = 200, COUNT = 300 };

/* ---- the lock ---- */

static struct dt_ticketlock lock;
static int served[THREADS];
static int n_served;

static void *take_a_turn(void *arg)
{
    dt_ticketlock_await(&lock, dt_ticketlock_draw(&lock));
    served[n_served++] = *(int *)arg;
    dt_ticketlock_leave(&lock);
    return NULL;
}

static void threads_are_served_in_order(void **state)
{
    pthread_t thread[THREADS];
    int number[THREADS];

    (void)state;
    for (int round = 0; round < 50; round++) {
        n_served = 0;
        assert_true(dt_ticketlock_try(&lock, NULL));
        for (int i = 0; i < THREADS; i++) {
            uint32_t next = atomic_load(&lock.next);

            number[i] = i;
            assert_int_equal(pthread_create(&thread[i], NULL, take_a_turn, &number[i]), 0);
            while (atomic_load(&lock.next) == next)
                sched_yield();
        }
        assert_false(dt_ticketlock_try(&lock, NULL));
        dt_ticketlock_leave(&lock);
        for (int i = 0; i < THREADS; i++)
            pthread_join(thread[i], NULL);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(served[i], i);
    }
}

/* ---- calls ---- */

static void run_all(const struct testjob_plan *plan)
{
    assert_int_equal(testjob_pass(plan), 0);
}

/* All threads of all ranks make the same calls, so their order does not matter to the ranks. But no
 * two threads may be inside the communicator at the same time. */
static void *reduce_often(void *failed)
{
    int64_t buf[COUNT];

    for (int call = 0; call < CALLS; call++) {
        for (int i = 0; i < COUNT; i++)
            buf[i] = dt_rank() + i;
        if (dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, COUNT, DT_I64, DT_SUM) != DT_OK)
            return failed;
        for (int i = 0; i < COUNT; i++) {
            if (buf[i] != dt_size() * i + dt_size() * (dt_size() - 1) / 2)
                return failed;
        }
        dt_step(call);
    }
    return NULL;
}

static int crowd(int rank, void *arg)
{
    pthread_t thread[THREADS];
    void *failed = NULL;

    (void)rank;
    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int i = 0; i < THREADS; i++)
        NEED(pthread_create(&thread[i], NULL, reduce_often, thread) == 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], &failed);
        NEED(!failed);
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void threads_take_turns_on_a_communicator(void **state)
{
    static const char *const placements[] = { "1", "3", "2 1" };

    (void)state;
    for (size_t i = 0; i < sizeof placements / sizeof *placements; i++)
        run_all(&(struct testjob_plan){ .hosts = placements[i], .body = crowd });
}

/* Each thread has its own communicator: 10^5 calls in total, of sizes that differ from those of the
 * other threads, so that data for another communicator would not match. */
enum { MANY_CALLS = SANITIZED ? 500 : 100000 / THREADS };

struct worker {
    pthread_t thread;
    dt_comm_t *comm;
    int number;
    const char *bad;
};

static void *call_often(void *arg)
{
    static int64_t bufs[THREADS][3000];
    struct worker *w = arg;
    int64_t *buf = bufs[w->number];
    int me = dt_rank(), size = dt_size();

    for (int call = 0; call < MANY_CALLS && !w->bad; call++) {
        size_t count =
            (size_t)(call % 100 ? call % 7 * 5 + w->number : call * 31 + w->number) % 3000;
        int root = (call + w->number) % size;

        for (size_t i = 0; i < count; i++)
            buf[i] = me + (int64_t)i * call + w->number;
        if (call % 3 == 0) {
            w->bad =
                dt_broadcast(w->comm, buf, count, DT_I64, root) != DT_OK ? "broadcast fails" : NULL;
            for (size_t i = 0; i < count; i++)
                w->bad = buf[i] != root + (int64_t)i * call + w->number ? "wrong data" : w->bad;
            continue;
        }
        w->bad = dt_all_reduce(w->comm, DT_IN_PLACE, buf, count, DT_I64, DT_SUM) != DT_OK
                     ? "all-reduce fails"
                     : NULL;
        for (size_t i = 0; i < count; i++)
            w->bad = buf[i] != size * ((int64_t)i * call + w->number) + size * (size - 1) / 2
                         ? "wrong sum"
                         : w->bad;
    }
    return NULL;
}

static int busy(int rank, void *arg)
{
    struct worker workers[THREADS] = { 0 };

    (void)rank;
    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int i = 0; i < THREADS; i++) {
        workers[i].number = i;
        NEED(dt_comm_dup(DT_WORLD, &workers[i].comm) == DT_OK);
    }
    for (int i = 0; i < THREADS; i++)
        NEED(pthread_create(&workers[i].thread, NULL, call_often, &workers[i]) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < THREADS; i++) {
        if (workers[i].bad)
            fprintf(stderr, "thread %d: %s\n", i, workers[i].bad);
        NEED(!workers[i].bad);
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void calls_on_different_communicators_do_not_mix(void **state)
{
    (void)state;
    run_all(&(struct testjob_plan){ .hosts = "2", .body = busy });
    run_all(&(struct testjob_plan){ .hosts = "1 1", .body = busy });
}

/* Each thread has its own communicator, makes others from it, and calls with sizes that differ from
 * those of the other threads. */
struct seat {
    pthread_t thread;
    dt_comm_t *comm;
    int number;
    const char *bad;
};

static const char *sums(dt_comm_t *comm, int64_t *buf, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buf[i] = dt_rank() + (int64_t)i;
    if (dt_all_reduce(comm, DT_IN_PLACE, buf, count, DT_I64, DT_SUM) != DT_OK)
        return "all-reduce fails";
    for (size_t i = 0; i < count; i++) {
        if (buf[i] != dt_size() * (int64_t)i + dt_size() * (dt_size() - 1) / 2)
            return "wrong sum";
    }
    return NULL;
}

static void *work_apart(void *arg)
{
    static int64_t bufs[THREADS][4000];
    struct seat *s = arg;
    dt_comm_t *other;

    for (int call = 0; call < CALLS / 4 && !s->bad; call++) {
        size_t count = (size_t)(call * 97 + s->number * 1009) % 4000;

        s->bad = sums(s->comm, bufs[s->number], count);
        if (!s->bad && (dt_comm_dup(s->comm, &other) != DT_OK || dt_comm_rank(other) != dt_rank() ||
                        dt_comm_size(other) != dt_size()))
            s->bad = "dup fails";
        if (!s->bad)
            s->bad = sums(other, bufs[s->number], count / 3);
        if (!s->bad && dt_comm_free(other) != DT_OK)
            s->bad = "free fails";
    }
    return NULL;
}

static int apart(int rank, void *arg)
{
    struct seat seats[THREADS] = { 0 };

    (void)rank;
    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int i = 0; i < THREADS; i++) {
        seats[i].number = i;
        NEED(dt_comm_dup(DT_WORLD, &seats[i].comm) == DT_OK);
    }
    for (int i = 0; i < THREADS; i++)
        NEED(pthread_create(&seats[i].thread, NULL, work_apart, &seats[i]) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(seats[i].thread, NULL);
    for (int i = 0; i < THREADS; i++) {
        if (seats[i].bad)
            fprintf(stderr, "thread %d: %s\n", i, seats[i].bad);
        NEED(!seats[i].bad);
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void threads_on_different_communicators_do_not_wait_for_each_other(void **state)
{
    (void)state;
    run_all(&(struct testjob_plan){ .hosts = "1", .body = apart });
    run_all(&(struct testjob_plan){ .hosts = "3", .body = apart });
}

/* ---- leaving while another thread is inside a call ---- */

static _Atomic int *inside;

static void *wait_for_all(void *arg)
{
    *(dt_result_t *)arg = dt_barrier(DT_WORLD);
    return NULL;
}

static int leaver(int rank, void *arg)
{
    dt_result_t barrier = DT_OK;
    pthread_t thread;

    (void)arg;
    NEED(dt_init() == DT_OK);
    if (rank == 1) {
        while (*inside < 2)
            usleep(500);
        NEED(dt_barrier(DT_WORLD) == DT_OK);
        NEED(dt_finalize() == DT_OK);
        return 0;
    }
    NEED(pthread_create(&thread, NULL, wait_for_all, &barrier) == 0);
    while (*inside < 1)
        usleep(500);
    NEED(dt_finalize() == DT_ERR_STATE);
    NEED(strstr(dt_last_error(), "another thread"));
    *inside = 2;
    pthread_join(thread, NULL);
    NEED(barrier == DT_OK);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void see_whether_inside(struct testjob *job, int ms)
{
    uint64_t call = testjob_call(job, 0);

    (void)ms;
    if (*inside == 0 && (call & DT_HOSTSHM_INSIDE) &&
        strcmp(dt_hostshm_call_name(call), "barrier") == 0)
        *inside = 1;
}

static void dt_finalize_waits_for_threads_inside_calls(void **state)
{
    (void)state;
    inside = testjob_shared(4096);
    run_all(&(struct testjob_plan){ .hosts = "2", .body = leaver, .on_tick = see_whether_inside });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_are_served_in_order),
        CHECKS("24", threads_take_turns_on_a_communicator),
        CHECKS("24", threads_on_different_communicators_do_not_wait_for_each_other),
        CHECKS("24", calls_on_different_communicators_do_not_mix),
        cmocka_unit_test(dt_finalize_waits_for_threads_inside_calls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
