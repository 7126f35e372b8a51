/* Calls in the background: how they are made, and how the program waits for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/dtrun.h"
#include "tests/unit/checks.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/testjob.h"

enum { MANY = 64, COUNT = 1000 };

static const char *const placements[] = { "1", "2", "3 1", NULL };

static void run_all(int (*body)(int rank, void *arg))
{
    assert_int_equal(testjob_pass_all(placements, body), 0);
}

static int64_t buffers[MANY][COUNT];
static dt_request_t requests[MANY];

static int start_many(void)
{
    for (int k = 0; k < MANY; k++) {
        for (int i = 0; i < COUNT; i++)
            buffers[k][i] = dt_rank() + i + k;
        NEED(dt_iall_reduce(DT_WORLD, DT_IN_PLACE, buffers[k], COUNT, DT_I64, DT_SUM,
                            &requests[k]) == DT_OK);
        NEED(requests[k].id != 0);
    }
    return 0;
}

static int check_many(void)
{
    for (int k = 0; k < MANY; k++) {
        NEED(requests[k].id == 0);
        for (int i = 0; i < COUNT; i++)
            NEED(buffers[k][i] == ranks_sum(i + k));
    }
    return 0;
}

/* Every rank waits in an order of its own, or for all, or tests until all are done. */
static int wait_in_any_order(int rank, void *arg)
{
    int done = 0;

    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int round = 0; round < 6; round++) {
        NEED(start_many() == 0);
        for (int k = 0; (rank + round) % 3 == 0 && k < MANY; k++)
            NEED(dt_wait(&requests[(k * 37 + rank) % MANY]) == DT_OK);
        if ((rank + round) % 3 == 1)
            NEED(dt_wait_all(requests, MANY) == DT_OK);
        for (int k = 0; (rank + round) % 3 == 2 && k < MANY; k += done)
            NEED(dt_test(&requests[k], &done) == DT_OK);
        NEED(check_many() == 0);
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void requests_may_be_waited_for_in_any_order(void **state)
{
    (void)state;
    run_all(wait_in_any_order);
}

static int wait_for_any(int rank, void *arg)
{
    size_t index = 0, times[MANY] = { 0 };

    (void)rank;
    (void)arg;
    NEED(dt_init() == DT_OK && start_many() == 0);
    for (int k = 0; k < MANY; k++) {
        NEED(dt_wait_any(requests, MANY, &index) == DT_OK);
        NEED(index < MANY && times[index]++ == 0 && requests[index].id == 0);
    }
    NEED(dt_wait_any(requests, MANY, &index) == DT_OK && index == MANY);
    NEED(check_many() == 0);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void wait_any_returns_each_request_once(void **state)
{
    (void)state;
    run_all(wait_for_any);
}

/* The last rank sends first. The others wait until rank 0 has received that. */
static int answer(int last)
{
    int32_t word = dt_rank(), go = 0;

    if (dt_rank() != last)
        NEED(dt_recv(DT_WORLD, &go, 1, DT_I32, 0) == DT_OK && go == 1);
    NEED(dt_send(DT_WORLD, &word, 1, DT_I32, 0) == DT_OK);
    return 0;
}

static int ask_all(int last)
{
    int32_t words[8] = { 0 }, go = 1;
    dt_request_t asked[8] = { { 0 } };
    size_t index, n = (size_t)dt_size();

    for (int peer = 1; peer <= last; peer++)
        NEED(dt_irecv(DT_WORLD, &words[peer], 1, DT_I32, peer, &asked[peer]) == DT_OK);
    NEED(dt_wait_any(asked, n, &index) == DT_OK);
    NEED(index == (size_t)last && words[last] == last && asked[last].id == 0);
    for (int peer = 1; peer < last; peer++)
        NEED(asked[peer].id != 0 && dt_send(DT_WORLD, &go, 1, DT_I32, peer) == DT_OK);
    for (int peer = 1; peer < last; peer++)
        NEED(dt_wait_any(asked, n, &index) == DT_OK && index < (size_t)last &&
             words[index] == (int32_t)index);
    NEED(dt_wait_any(asked, n, &index) == DT_OK && index == n);
    return 0;
}

static int wait_for_who_comes_first(int rank, void *arg)
{
    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int round = 0; dt_size() > 1 && round < 20; round++)
        NEED((rank == 0 ? ask_all(dt_size() - 1) : answer(dt_size() - 1)) == 0);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void wait_any_returns_the_first_request_that_is_done(void **state)
{
    (void)state;
    run_all(wait_for_who_comes_first);
}

static int any_fails(int rank, void *arg)
{
    int32_t x = 0;
    dt_request_t asked[2] = { { 0 } };
    size_t index = 9;

    (void)arg;
    NEED(dt_init() == DT_OK);
    if (dt_size() == 1)
        return dt_finalize() != DT_OK;
    if (rank != 0) {
        NEED(dt_recv(DT_WORLD, &x, 1, DT_I32, 0) == DT_ERR_ABORTED);
        return 0;
    }
    NEED(dt_irecv(DT_WORLD, &x, 1, DT_I32, 1, &asked[0]) == DT_OK);
    NEED(dt_comm_abort(DT_WORLD) == DT_OK);
    NEED(dt_wait_any(asked, 2, &index) == DT_ERR_ABORTED && index == 0 && asked[0].id == 0);
    return 0;
}

static void wait_any_reports_a_failure(void **state)
{
    (void)state;
    run_all(any_fails);
}

/* Calls of both kinds in turns. If their order changed, the calls of ranks would not match. */
static int mix_with_others(int rank, void *arg)
{
    int64_t a = rank, b = rank, c = rank;
    dt_request_t first, second;

    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int i = 0; i < 100; i++) {
        a = b = c = rank;
        NEED(dt_iall_reduce(DT_WORLD, DT_IN_PLACE, &a, 1, DT_I64, DT_SUM, &first) == DT_OK);
        NEED(dt_ibroadcast(DT_WORLD, &b, 1, DT_I64, dt_size() - 1, &second) == DT_OK);
        NEED(dt_all_reduce(DT_WORLD, DT_IN_PLACE, &c, 1, DT_I64, DT_MAX) == DT_OK);
        NEED(dt_wait(&second) == DT_OK && dt_wait(&first) == DT_OK);
        NEED(a == ranks_sum(0) && b == dt_size() - 1 && c == dt_size() - 1);
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void calls_keep_the_order_in_which_they_were_made(void **state)
{
    (void)state;
    run_all(mix_with_others);
}

/* All kinds are under way together. Their arguments are gone by the time the calls are made. */
static int start_every_kind(int rank, dt_request_t *q)
{
    static int64_t x[13][8], y[13][8];
    dt_all_reduce_options_t options = DT_ALL_REDUCE_OPTIONS_INIT;
    size_t n = (size_t)dt_size(), counts[4] = { 1, 1, 1, 1 };
    static float f;
    int k = 0;

    for (int i = 0; i < 13 * 8; i++) {
        x[i / 8][i % 8] = rank;
        y[i / 8][i % 8] = -1;
    }
    f = 1;
    options.prescale = 3;
    NEED(dt_iall_reduce(DT_WORLD, x[0], y[0], 1, DT_I64, DT_SUM, &q[k++]) == DT_OK);
    NEED(dt_iall_reduce_with(DT_WORLD, DT_IN_PLACE, &f, 1, DT_F32, DT_SUM, &options, &q[k++]) ==
         DT_OK);
    NEED(dt_ibroadcast(DT_WORLD, x[2], 1, DT_I64, dt_size() - 1, &q[k++]) == DT_OK);
    NEED(dt_ireduce(DT_WORLD, x[3], y[3], 1, DT_I64, DT_MAX, 0, &q[k++]) == DT_OK);
    NEED(dt_ireduce_scatter(DT_WORLD, x[4], y[4], 1, DT_I64, DT_SUM, &q[k++]) == DT_OK);
    NEED(dt_iall_gather(DT_WORLD, x[5], y[5], 1, DT_I64, &q[k++]) == DT_OK);
    NEED(dt_iall_gatherv(DT_WORLD, x[6], y[6], counts, DT_I64, &q[k++]) == DT_OK);
    NEED(dt_iall_to_all(DT_WORLD, x[7], y[7], 1, DT_I64, &q[k++]) == DT_OK);
    NEED(dt_iall_to_allv(DT_WORLD, x[8], counts, y[8], counts, DT_I64, &q[k++]) == DT_OK);
    NEED(dt_igather(DT_WORLD, x[9], y[9], 1, DT_I64, 0, &q[k++]) == DT_OK);
    NEED(dt_igatherv(DT_WORLD, x[10], 1, y[10], rank ? NULL : counts, DT_I64, 0, &q[k++]) == DT_OK);
    NEED(dt_iscatter(DT_WORLD, x[11], y[11], 1, DT_I64, dt_size() - 1, &q[k++]) == DT_OK);
    NEED(dt_iscatterv(DT_WORLD, x[12], rank ? NULL : counts, y[12], 1, DT_I64, 0, &q[k++]) ==
         DT_OK);
    NEED(dt_ibarrier(DT_WORLD, &q[k++]) == DT_OK);
    for (size_t i = 0; i < 4; i++)
        counts[i] = SIZE_MAX;
    options.prescale = -1;
    for (; k > 0; k--)
        NEED(dt_wait(&q[(k + 5) % 14]) == DT_OK);
    NEED(y[0][0] == ranks_sum(0) && f == 3 * (float)n && x[2][0] == dt_size() - 1);
    NEED((rank || y[3][0] == dt_size() - 1) && y[4][0] == ranks_sum(0));
    for (size_t i = 0; i < n; i++) {
        for (int j = 5; j < 11; j++)
            NEED((rank && j > 8) || y[j][i] == (int64_t)i);
    }
    NEED(y[11][0] == dt_size() - 1 && y[12][0] == 0);
    return 0;
}

static int every_kind(int rank, void *arg)
{
    dt_request_t q[14];

    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int i = 0; i < 20; i++)
        NEED(start_every_kind(rank, q) == 0);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void every_collective_can_be_made_in_the_background(void **state)
{
    (void)state;
    run_all(every_kind);
}

static int misuse(int rank, void *arg)
{
    int64_t x = rank;
    dt_request_t request = { 0 }, copy, stray = { 12345 };
    int done = 0;

    (void)arg;
    NEED(dt_iall_reduce(DT_WORLD, DT_IN_PLACE, &x, 1, DT_I64, DT_SUM, &request) == DT_ERR_STATE);
    NEED(dt_init() == DT_OK);
    NEED(dt_iall_reduce(DT_WORLD, DT_IN_PLACE, &x, 1, DT_I64, DT_SUM, NULL) == DT_ERR_ARG);
    NEED(dt_iall_reduce(DT_WORLD, NULL, &x, 1, DT_I64, DT_SUM, &request) == DT_ERR_ARG);
    NEED(request.id == 0 && dt_wait(&request) == DT_OK);
    NEED(dt_test(&request, &done) == DT_OK && done);
    NEED(dt_wait(&stray) == DT_ERR_ARG && dt_wait(NULL) == DT_ERR_ARG);
    NEED(dt_test(&request, NULL) == DT_ERR_ARG);
    NEED(dt_ibroadcast(DT_WORLD, &x, 1, DT_I64, dt_size(), &request) == DT_ERR_ARG);
    NEED(strstr(dt_last_error(), "root") && request.id == 0);
    NEED(dt_iall_reduce(DT_WORLD, DT_IN_PLACE, &x, 1, DT_I64, DT_SUM, &request) == DT_OK);
    copy = request;
    NEED(dt_wait(&request) == DT_OK && x == ranks_sum(0));
    NEED(dt_wait(&copy) == DT_ERR_ARG && strstr(dt_last_error(), "already waited for"));
    NEED(dt_finalize() == DT_OK);
    return 0;
}

/* Each gets a type that does not exist. */
#define NAMES(call)                                                                                \
    NEED((call) == DT_ERR_ARG && q.id == 0 &&                                                      \
         strncmp(dt_last_error(), #call, strcspn(#call, "(")) == 0 &&                              \
         dt_last_error()[strcspn(#call, "(")] == ':')

static int name_calls(int rank, void *arg)
{
    const dt_dtype_t none = (dt_dtype_t)99;
    dt_all_reduce_options_t o = DT_ALL_REDUCE_OPTIONS_INIT;
    dt_request_t q = { 0 };
    size_t counts[8] = { 0 };
    float x[8] = { 0 };

    (void)arg;
    NEED(dt_init() == DT_OK);
    NAMES(dt_iall_reduce(DT_WORLD, DT_IN_PLACE, x, 1, none, DT_SUM, &q));
    NAMES(dt_iall_reduce_with(DT_WORLD, DT_IN_PLACE, x, 1, none, DT_SUM, NULL, &q));
    NAMES(dt_ibroadcast(DT_WORLD, x, 1, none, 0, &q));
    NAMES(dt_ireduce(DT_WORLD, x, x + 4, 1, none, DT_SUM, 0, &q));
    NAMES(dt_ireduce_scatter(DT_WORLD, x, x + 4, 1, none, DT_SUM, &q));
    NAMES(dt_iall_gather(DT_WORLD, x, x + 4, 1, none, &q));
    NAMES(dt_iall_gatherv(DT_WORLD, x, x + 4, counts, none, &q));
    NAMES(dt_iall_to_all(DT_WORLD, x, x + 4, 1, none, &q));
    NAMES(dt_iall_to_allv(DT_WORLD, x, counts, x + 4, counts, none, &q));
    NAMES(dt_igather(DT_WORLD, x, x + 4, 1, none, 0, &q));
    NAMES(dt_igatherv(DT_WORLD, x, 1, x + 4, counts, none, 0, &q));
    NAMES(dt_iscatter(DT_WORLD, x, x + 4, 1, none, 0, &q));
    NAMES(dt_iscatterv(DT_WORLD, x, counts, x + 4, 1, none, 0, &q));
    NAMES(dt_isend(DT_WORLD, x, 1, none, 1 - rank, &q));
    NAMES(dt_irecv(DT_WORLD, x, 1, none, 1 - rank, &q));
    NAMES(dt_ibarrier(DT_COMM_NULL, &q));
    o.threshold = 0;
    o.wire = DT_WIRE_2BIT;
    NAMES(dt_iall_reduce_with(DT_WORLD, DT_IN_PLACE, x, 1, DT_F32, DT_SUM, &o, &q));
    NEED(dt_finalize() == DT_OK);
    NEED(dt_ibarrier(DT_WORLD, &q) == DT_ERR_STATE);
    NEED(strncmp(dt_last_error(), "dt_ibarrier was called after", 28) == 0);
    return 0;
}

static void errors_name_the_call_of_the_program(void **state)
{
    (void)state;
    run_all(name_calls);
}

static void misuse_is_an_error_and_does_no_harm(void **state)
{
    (void)state;
    run_all(misuse);
}

static int disagree(int rank, void *arg)
{
    int64_t x[2] = { 0 };
    dt_request_t request[2];

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_iall_reduce(DT_WORLD, DT_IN_PLACE, x, rank ? 1 : 2, DT_I64, DT_SUM, &request[0]) ==
         DT_OK);
    NEED(dt_iall_reduce(DT_WORLD, DT_IN_PLACE, x, 1, DT_I64, DT_SUM, &request[1]) == DT_OK);
    NEED(dt_wait_all(request, 2) == (dt_size() == 1 ? DT_OK : DT_ERR_MISMATCH));
    NEED(dt_size() == 1 || strstr(dt_last_error(), "called all-reduce of"));
    NEED(dt_finalize() == (dt_size() == 1 ? DT_OK : DT_ERR_MISMATCH));
    return 0;
}

static void dt_wait_reports_a_failure(void **state)
{
    (void)state;
    run_all(disagree);
}

/* ---- threads and signals ---- */

static volatile sig_atomic_t caught;
static pthread_t catcher;

static void catch (int signo)
{
    (void)signo;
    caught += pthread_equal(pthread_self(), catcher) ? 1 : 1000;
}

/* A signal for the process never interrupts the thread that the library has made. */
static int storm(int rank, void *arg)
{
    struct sigaction action = { .sa_handler = catch };

    (void)rank;
    (void)arg;
    catcher = pthread_self();
    sigaction(SIGALRM, &action, NULL);
    NEED(dt_init() == DT_OK);
    for (int round = 0; round < 5; round++) {
        NEED(start_many() == 0);
        for (int k = 0; k < 20; k++)
            kill(getpid(), SIGALRM);
        NEED(dt_wait_all(requests, MANY) == DT_OK);
        NEED(check_many() == 0);
    }
    NEED(caught > 0 && caught < 1000);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void signals_are_left_to_the_program(void **state)
{
    (void)state;
    run_all(storm);
}

/* Threads wait for copies of one request. One of them gets it. */
static void *wait_for_copy(void *arg)
{
    dt_request_t copy = *(dt_request_t *)arg;
    dt_result_t r = dt_wait(&copy);

    return r == DT_OK ? arg : NULL;
}

static int compete(int rank, void *arg)
{
    pthread_t thread[4];
    int64_t x[2] = { 0 };

    (void)rank;
    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int round = 0; round < 200; round++) {
        dt_request_t request[2];
        int got = 0;

        for (int i = 0; i < 2; i++)
            NEED(dt_iall_reduce(DT_WORLD, DT_IN_PLACE, &x[i], 1, DT_I64, DT_SUM, &request[i]) ==
                 DT_OK);
        NEED(request[0].id != request[1].id);
        for (int i = 0; i < 4; i++)
            NEED(pthread_create(&thread[i], NULL, wait_for_copy, &request[i / 2]) == 0);
        for (int i = 0; i < 4; i++) {
            void *won;

            pthread_join(thread[i], &won);
            got += won != NULL;
        }
        NEED(got == 2);
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void only_one_thread_gets_a_request(void **state)
{
    (void)state;
    run_all(compete);
}

static _Thread_local int yields;

/* Replaces libc's. */
int sched_yield(void)
{
    yields++;
    return (int)syscall(SYS_sched_yield);
}

/* Otherwise a program that tests in a loop keeps the CPU from the thread that makes the call. */
static int test_in_vain(int rank, void *arg)
{
    dt_request_t request;
    int done = 1;

    (void)arg;
    NEED(dt_init() == DT_OK);
    if (rank == 0) {
        NEED(dt_ibarrier(DT_WORLD, &request) == DT_OK);
        yields = 0;
        NEED(dt_test(&request, &done) == DT_OK && !done && yields == 1);
        NEED(dt_wait_for(&request, 0, &done) == DT_OK && !done && yields == 2);
    }
    NEED(rank == 0 ? dt_send(DT_WORLD, NULL, 0, DT_I8, 1) == DT_OK
                   : dt_recv(DT_WORLD, NULL, 0, DT_I8, 0) == DT_OK);
    NEED(rank == 0 ? dt_wait(&request) == DT_OK : dt_barrier(DT_WORLD) == DT_OK);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void a_test_in_vain_gives_up_the_cpu(void **state)
{
    (void)state;
    testjob_must_pass("2", test_in_vain, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKS("25", requests_may_be_waited_for_in_any_order),
        cmocka_unit_test(wait_any_returns_each_request_once),
        cmocka_unit_test(wait_any_returns_the_first_request_that_is_done),
        cmocka_unit_test(wait_any_reports_a_failure),
        cmocka_unit_test(calls_keep_the_order_in_which_they_were_made),
        cmocka_unit_test(every_collective_can_be_made_in_the_background),
        cmocka_unit_test(errors_name_the_call_of_the_program),
        cmocka_unit_test(misuse_is_an_error_and_does_no_harm),
        cmocka_unit_test(only_one_thread_gets_a_request),
        cmocka_unit_test(dt_wait_reports_a_failure),
        cmocka_unit_test(a_test_in_vain_gives_up_the_cpu),
        CHECKS("26", signals_are_left_to_the_program),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
