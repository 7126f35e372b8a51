/* How ranks leave: dt_finalize and dt_comm_free, with requests under way and other threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/dtrun.h"
#include "runtime/wire/hostshm.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/testjob.h"

static const char *const everywhere[] = { "1", "2", "3 1", NULL };
static const char *const pairs[] = { "2", "1 1", NULL };

/* How far the ranks have got, for each other and for the agents. */
static _Atomic int *stage;

static int setup(void **state)
{
    (void)state;
    if (!stage)
        stage = testjob_shared(sizeof *stage);
    *stage = 0;
    return 0;
}

static void await_stage(int wanted)
{
    while (*stage < wanted)
        usleep(500);
}

/* ---- what is left ---- */

static int count_threads(void)
{
    DIR *d = opendir("/proc/self/task");
    int n = 0;

    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n - 2; /* "." and ".." */
}

static void *end_at_once(void *arg)
{
    return arg;
}

/* The threads of a sanitizer start with the first thread of the program. */
static int start_and_count_threads(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, end_at_once, NULL) != 0)
        return -1;
    pthread_join(thread, NULL);
    return count_threads();
}

static int leave_things(int rank, void *arg)
{
    dt_request_t request, later, pending;
    dt_bucket_t *bucket;
    dt_comm_t *comm;
    int64_t x = rank, y[2] = { rank, rank };
    uint8_t *memory;
    void *p;
    int64_t taken = 7, z = 0;
    int done = 0, n, threads = start_and_count_threads();

    (void)arg;
    NEED(dt_init() == DT_OK);
    n = dt_size();
    NEED(dt_comm_dup(DT_WORLD, &comm) == DT_OK);
    NEED(dt_mem_alloc(comm, 4096, &p) == DT_OK);
    memory = p;
    NEED(dt_bucket_create(comm, 0, DT_I64, DT_SUM, &bucket) == DT_OK);
    NEED(dt_bucket_push(bucket, y, 2) == DT_OK);
    NEED(dt_iall_reduce(comm, DT_IN_PLACE, &x, 1, DT_I64, DT_SUM, &request) == DT_OK);
    if (n > 1) {
        NEED(dt_irecv(comm, y, 1, DT_I64, (rank + 1) % n, &pending) == DT_OK);
        NEED(dt_finalize() == DT_ERR_STATE && strstr(dt_last_error(), "a request or bucket"));
        NEED(dt_barrier(DT_WORLD) == DT_OK); /* nothing is sent before this */
        NEED(dt_send(comm, &taken, 1, DT_I64, (rank + n - 1) % n) == DT_OK);
        NEED(dt_wait(&pending) == DT_OK);
    }
    NEED(dt_iall_reduce(comm, DT_IN_PLACE, &z, 1, DT_I64, DT_SUM, &later) == DT_OK);
    NEED(dt_wait(&later) == DT_OK); /* and so is every earlier request */
    NEED(dt_finalize() == DT_OK);
    while (count_threads() > threads) /* a joined thread may be listed for a moment */
        sched_yield();
    NEED(dt_barrier(comm) == DT_ERR_STATE);
    NEED(dt_test(&request, &done) == DT_OK && done && x == ranks_sum(0));
    NEED(dt_bucket_push(bucket, y, 2) == DT_ERR_STATE);
    NEED(dt_bucket_free(bucket) == DT_ERR_STATE);
    memory[4095] = 1;
    NEED(dt_mem_free(memory) == DT_OK);
    return 0;
}

static void objects_left_at_the_end_do_no_harm(void **state)
{
    (void)state;
    assert_int_equal(testjob_pass_all(everywhere, leave_things), 0);
}

/* Rank 1 joins the call when rank 0 has been refused. */
static int leave_too_early(int rank, void *arg)
{
    int64_t x = rank;
    dt_request_t request;

    (void)arg;
    NEED(dt_init() == DT_OK);
    if (rank == 0) {
        NEED(dt_iall_reduce(DT_WORLD, DT_IN_PLACE, &x, 1, DT_I64, DT_SUM, &request) == DT_OK);
        NEED(dt_finalize() == DT_ERR_STATE);
        *stage = 1;
        NEED(dt_wait(&request) == DT_OK);
    } else {
        await_stage(1);
        NEED(dt_all_reduce(DT_WORLD, DT_IN_PLACE, &x, 1, DT_I64, DT_SUM) == DT_OK);
    }
    NEED(x == ranks_sum(0) && dt_finalize() == DT_OK);
    return 0;
}

static void dt_finalize_waits_for_the_last_request(void **state)
{
    (void)state;
    testjob_must_pass("2", leave_too_early, NULL);
}

/* ---- beside other threads ---- */

enum { FINALIZING = 1, REFUSED };

static bool is_refused(dt_result_t r, dt_request_t q)
{
    return r == DT_ERR_STATE && q.id == 0 && strstr(dt_last_error(), "another thread is freeing");
}

/* What one of several threads still calls while another one is in dt_finalize. */
static void *ask_too_late(void *arg)
{
    dt_comm_t *comm = *(dt_comm_t **)arg;
    dt_bucket_t *bucket = NULL;
    int64_t x[4] = { 0 };
    dt_request_t q = { 0 };
    int peer = 1 - dt_rank();
    bool good;

    await_stage(FINALIZING);
    good = is_refused(dt_iall_reduce(DT_WORLD, DT_IN_PLACE, x, 1, DT_I64, DT_SUM, &q), q) &&
           is_refused(dt_ibarrier(comm, &q), q) &&
           is_refused(dt_irecv(comm, x, 1, DT_I64, peer, &q), q) &&
           is_refused(dt_isend(DT_WORLD, x, 1, DT_I64, peer, &q), q) &&
           is_refused(dt_send(DT_WORLD, x, 1, DT_I64, peer), q) &&
           is_refused(dt_recv(comm, x, 1, DT_I64, peer), q) && dt_comm_rank(comm) == dt_rank() &&
           dt_bucket_create(comm, 0, DT_I64, DT_SUM, &bucket) == DT_OK &&
           dt_bucket_push(bucket, x, 4) == DT_OK && dt_bucket_free(bucket) == DT_ERR_STATE;
    *stage = REFUSED;
    return good ? NULL : arg;
}

static int finalize_first(int rank, void *arg)
{
    pthread_t thread;
    dt_comm_t *comm;
    void *failed;

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_comm_dup(DT_WORLD, &comm) == DT_OK);
    if (rank == 0)
        NEED(pthread_create(&thread, NULL, ask_too_late, &comm) == 0);
    else
        await_stage(REFUSED);
    NEED(dt_finalize() == DT_OK);
    if (rank == 0) {
        pthread_join(thread, &failed);
        NEED(!failed);
    }
    return 0;
}

static void see_it_finalize(struct testjob *job, int ms)
{
    uint64_t call = testjob_call(job, 0);

    (void)ms;
    if (*stage == 0 && (call & DT_HOSTSHM_INSIDE) &&
        strcmp(dt_hostshm_call_name(call), "dt_finalize") == 0)
        *stage = FINALIZING;
}

static void calls_during_dt_finalize_are_refused(void **state)
{
    (void)state;
    for (const char *const *hosts = pairs; *hosts; hosts++) {
        *stage = 0;
        assert_int_equal(testjob_pass(&(struct testjob_plan){
                             .hosts = *hosts, .body = finalize_first, .on_tick = see_it_finalize }),
                         0);
    }
}

static char dump_path[] = "/tmp/dtrun-leaving-XXXXXX";
static _Atomic bool left;

static bool names_its_host(void)
{
    FILE *f = fopen(dump_path, "r");
    char line[256] = "";
    bool named = f && fgets(line, sizeof line, f) && strstr(line, "(host0)");

    if (f)
        fclose(f);
    return named;
}

static void *dump_on(void *arg)
{
    bool last = false;

    while (!last) {
        last = left;
        if (dt_recorder_dump(dump_path) != DT_OK || !names_its_host())
            return arg;
    }
    return NULL;
}

static void *step_on(void *arg)
{
    for (int64_t step = 0; !left; step++)
        dt_step(step);
    return arg;
}

static int step_while_leaving(int rank, void *arg)
{
    pthread_t thread;

    (void)rank;
    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(pthread_create(&thread, NULL, step_on, NULL) == 0);
    NEED(dt_finalize() == DT_OK);
    left = true;
    pthread_join(thread, NULL);
    return 0;
}

static void dt_step_works_during_and_after_dt_finalize(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++)
        testjob_must_pass("2", step_while_leaving, NULL);
}

static int dump_while_leaving(int rank, void *arg)
{
    pthread_t thread;
    void *failed;

    (void)rank;
    (void)arg;
    NEED(close(mkstemp(dump_path)) == 0);
    NEED(dt_init() == DT_OK);
    NEED(pthread_create(&thread, NULL, dump_on, dump_path) == 0);
    NEED(dt_finalize() == DT_OK);
    left = true;
    pthread_join(thread, &failed);
    unlink(dump_path);
    NEED(!failed);
    return 0;
}

static void dumps_are_whole_during_and_after_dt_finalize(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++)
        testjob_must_pass("2", dump_while_leaving, NULL);
}

/* ---- communicators ---- */

/* The abort ends what rank 0 never receives. The reported failure is that of dt_comm_free. */
static int free_what_was_aborted(int rank, void *arg)
{
    dt_error_info_t info = { .size = sizeof info };
    int64_t x;
    dt_request_t q;
    dt_comm_t *comm;

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_comm_dup(DT_WORLD, &comm) == DT_OK);
    NEED(dt_irecv(comm, &x, 1, DT_I64, 1 - rank, &q) == DT_OK);
    NEED(dt_comm_abort(comm) == DT_OK);
    NEED(dt_comm_free(comm) == DT_ERR_ABORTED);
    NEED(dt_last_error_info(&info) == DT_OK && strcmp(info.operation, "dt_comm_free") == 0);
    NEED(dt_wait(&q) == DT_ERR_ABORTED);
    NEED(dt_last_error_info(&info) == DT_OK && strcmp(info.operation, "recv") == 0);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void a_communicator_is_freed_with_its_aborted_calls(void **state)
{
    (void)state;
    assert_int_equal(testjob_pass_all(pairs, free_what_was_aborted), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_left_at_the_end_do_no_harm),
        cmocka_unit_test_setup(dt_finalize_waits_for_the_last_request, setup),
        cmocka_unit_test_setup(calls_during_dt_finalize_are_refused, setup),
        cmocka_unit_test(dumps_are_whole_during_and_after_dt_finalize),
        cmocka_unit_test(dt_step_works_during_and_after_dt_finalize),
        cmocka_unit_test(a_communicator_is_freed_with_its_aborted_calls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
