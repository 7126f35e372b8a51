/* What dtrun.h allows threads to do, rule by rule. threads.c and p2p.c test more of the order of
 * calls on one communicator and between two ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/dtrun.h"
#include "runtime/dtrun_tune.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/testjob.h"

enum { THREADS = 4, CALLS = 30, COUNT = 500 };

struct worker {
    pthread_t thread;
    int number;
    dt_comm_t *comm;
    dt_request_t request;
    void *memory;
    int64_t data[COUNT];
    const char *bad;
};

static struct worker workers[THREADS];

static const char *run_all(void *(*work)(void *arg))
{
    const char *bad = NULL;

    for (int i = 0; i < THREADS; i++) {
        workers[i].number = i;
        workers[i].bad = NULL;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            return "no thread";
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        bad = workers[i].bad ? workers[i].bad : bad;
    }
    return bad;
}

#define NEED_ALL(work)                                                                             \
    do {                                                                                           \
        const char *bad = run_all(work);                                                           \
                                                                                                   \
        if (bad)                                                                                   \
            fprintf(stderr, "rank %d: %s: %s\n", dt_rank(), #work, bad);                           \
        NEED(!bad);                                                                                \
    } while (0)

/* ---- beginning and end ---- */

static _Atomic int began, refused;

static void *begin(void *arg)
{
    dt_result_t r = dt_init();

    (void)arg;
    began += r == DT_OK;
    refused += r == DT_ERR_STATE && strstr(dt_last_error(), "twice");
    return NULL;
}

static void *finish(void *arg)
{
    dt_result_t r = dt_finalize();

    (void)arg;
    began -= r == DT_OK;
    return NULL;
}

static int begin_together(int rank, void *arg)
{
    (void)rank;
    (void)arg;
    NEED_ALL(begin);
    NEED(began == 1 && refused == THREADS - 1);
    NEED(dt_barrier(DT_WORLD) == DT_OK); /* in a thread that did not call dt_init */
    NEED_ALL(finish);
    NEED(began == 0);
    return 0;
}

static void one_thread_may_initialise_and_another_finalise(void **state)
{
    (void)state;
    testjob_must_pass("2", begin_together, NULL);
}

static _Atomic int *hellos;

static void note_hello(struct testjob *job, int rank, uint16_t port)
{
    (void)job;
    (void)rank;
    (void)port;
    *hellos += 1;
}

static int be_no_rank(void)
{
    alarm(180); /* ends a test that would wait for ever for a thread that does not exist */
    NEED(dt_init() == DT_ERR_STATE && strstr(dt_last_error(), "forked from a rank"));
    NEED(dt_barrier(DT_WORLD) == DT_ERR_STATE && strstr(dt_last_error(), "forked from a rank"));
    return 0;
}

/* A fork while another thread is in dt_init, which rank 1 has not called yet. */
static int fork_early(int rank, void *arg)
{
    pthread_t thread;
    int status;
    pid_t pid;

    (void)arg;
    if (rank == 1) {
        while (*hellos < 2)
            usleep(500);
        NEED(dt_init() == DT_OK && dt_finalize() == DT_OK);
        return 0;
    }
    NEED(pthread_create(&thread, NULL, begin, NULL) == 0);
    while (*hellos < 1)
        usleep(500);
    pid = fork();
    if (pid == 0)
        _exit(be_no_rank());
    NEED(waitpid(pid, &status, 0) == pid && status == 0);
    *hellos += 1;
    pthread_join(thread, NULL);
    NEED(began == 1 && dt_finalize() == DT_OK);
    return 0;
}

static void a_child_that_is_forked_during_dt_init_is_no_rank(void **state)
{
    (void)state;
    hellos = testjob_shared(sizeof *hellos);
    assert_int_equal(testjob_pass(&(struct testjob_plan){
                         .hosts = "2", .body = fork_early, .on_hello = note_hello }),
                     0);
}

/* A call that is wrong in the parent may be right in its child. */
static int begin_in_child(int rank, void *arg)
{
    int status;
    pid_t pid;

    (void)rank;
    (void)arg;
    NEED(setenv("DTRUN_WIRE", "nonsense", 1) == 0);
    NEED(dt_init() == DT_ERR_ARG && dt_init() == DT_ERR_ARG);
    pid = fork();
    if (pid == 0)
        _exit(unsetenv("DTRUN_WIRE") || dt_init() != DT_OK || dt_barrier(DT_WORLD) != DT_OK ||
              dt_finalize() != DT_OK);
    NEED(waitpid(pid, &status, 0) == pid && status == 0);
    return 0;
}

static void a_child_whose_parent_is_no_rank_may_be_one(void **state)
{
    (void)state;
    testjob_must_pass("2", begin_in_child, NULL);
}

/* ---- communicators ---- */

static void *work_on_own(void *arg)
{
    struct worker *w = arg;
    dt_all_reduce_options_t options = DT_ALL_REDUCE_OPTIONS_INIT;
    float residual[8] = { 0 };
    dt_comm_t *part;

    options.prescale = w->number + 1;
    options.residual = residual;
    for (int call = 0; call < CALLS && !w->bad; call++) {
        float x[8] = { 1 };

        if (dt_comm_split(w->comm, 0, -dt_rank(), &part) != DT_OK ||
            dt_comm_set_timeout(part, 100) != DT_OK)
            w->bad = "split fails";
        else if (dt_all_reduce_with(part, DT_IN_PLACE, x, 8, DT_F32, DT_SUM, &options) != DT_OK ||
                 x[0] != (float)(dt_size() * (w->number + 1)))
            w->bad = "wrong sum with options";
        else if (dt_comm_free(part) != DT_OK)
            w->bad = "free fails";
    }
    return NULL;
}

static int own_communicators(int rank, void *arg)
{
    (void)rank;
    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int i = 0; i < THREADS; i++)
        NEED(dt_comm_dup(DT_WORLD, &workers[i].comm) == DT_OK);
    NEED_ALL(work_on_own);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void each_thread_may_have_its_communicator(void **state)
{
    (void)state;
    testjob_must_pass("2", own_communicators, NULL);
    testjob_must_pass("1 1", own_communicators, NULL);
}

static void *swap_on_own(void *arg)
{
    struct worker *w = arg;
    int64_t x = dt_rank(), y = -1;
    dt_request_t request;

    if (dt_irecv(w->comm, &y, 1, DT_I64, 1 - dt_rank(), &request) != DT_OK ||
        dt_send(w->comm, &x, 1, DT_I64, 1 - dt_rank()) != DT_OK || dt_wait(&request) != DT_OK ||
        y != 1 - dt_rank())
        w->bad = "swap fails";
    return NULL;
}

/* Each communicator chooses its channels once. */
static int tune_meanwhile(int rank, void *arg)
{
    struct worker w = { 0 };

    (void)rank;
    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int call = 0; call < CALLS; call++) {
        NEED(dt_comm_dup(DT_WORLD, &w.comm) == DT_OK);
        NEED(pthread_create(&w.thread, NULL, swap_on_own, &w) == 0);
        NEED(dt_comm_tune(w.comm, "shm_direct = 4K\nshm_small = 100\n") == DT_OK);
        pthread_join(w.thread, NULL);
        NEED(!w.bad && dt_comm_free(w.comm) == DT_OK);
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void channels_are_chosen_while_thresholds_change(void **state)
{
    (void)state;
    testjob_must_pass("2", tune_meanwhile, NULL);
    testjob_must_pass("1 1", tune_meanwhile, NULL);
}

/* ---- what any thread may do while another is inside a call ---- */

static _Atomic bool over;
static char *dump_path;

/* Each rank aborts the communicator at least once: the other rank's abort may reach it too late. */
static void *look_on(void *arg)
{
    struct worker *w = arg;
    dt_error_info_t info = { .size = sizeof info };

    do {
        if (dt_comm_rank(w->comm) != dt_rank() || dt_comm_size(w->comm) != dt_size())
            w->bad = "another rank or size";
        if (w->number == 0 && dt_recorder_dump(dump_path) != DT_OK)
            w->bad = "dump fails";
        if (dt_last_error_info(&info) != DT_OK || info.code != DT_OK || *dt_last_error())
            w->bad = "has another thread's error";
        if (dt_comm_set_timeout(w->comm, 100 + w->number) != DT_OK)
            w->bad = "a limit cannot be set";
        if (w->number == 1 && dt_comm_abort(w->comm) != DT_OK)
            w->bad = "abort fails";
        dt_strerror(DT_ERR_ABORTED);
        dt_version(NULL, NULL, NULL);
        sched_yield();
    } while (!over && !w->bad);
    return NULL;
}

/* Only rank 0 joins this call, so only the abort ends it. */
static void *wait_inside(void *arg)
{
    struct worker *w = arg;

    if (dt_rank() == 0 && dt_barrier(w->comm) != DT_ERR_ABORTED)
        w->bad = "the barrier was not aborted";
    if (dt_rank() == 0 && !strstr(dt_last_error(), "called dt_comm_abort"))
        w->bad = "the error is not told";
    over = true;
    return NULL;
}

static int look_while_inside(int rank, void *arg)
{
    struct worker inside = { .number = THREADS };
    char path[] = "/tmp/dtrun-threadrules-XXXXXX";

    (void)arg;
    NEED(close(mkstemp(path)) == 0);
    dump_path = path;
    NEED(dt_init() == DT_OK);
    NEED(dt_comm_dup(DT_WORLD, &inside.comm) == DT_OK);
    for (int i = 0; i < THREADS; i++)
        workers[i].comm = inside.comm;
    NEED(pthread_create(&inside.thread, NULL, wait_inside, &inside) == 0);
    NEED_ALL(look_on);
    pthread_join(inside.thread, NULL);
    unlink(path);
    NEED(!inside.bad);
    NEED(dt_barrier(DT_WORLD) == DT_OK); /* another communicator */
    NEED(dt_comm_free(inside.comm) == DT_ERR_ABORTED);
    NEED(dt_finalize() == DT_OK);
    (void)rank;
    return 0;
}

static void any_thread_may_abort_dump_and_ask(void **state)
{
    (void)state;
    testjob_must_pass("2", look_while_inside, NULL);
    testjob_must_pass("1 1", look_while_inside, NULL);
}

static void *set_limits(void *arg)
{
    struct worker *w = arg;
    dt_result_t r = DT_OK;

    while (r == DT_OK) {
        r = dt_comm_set_timeout(DT_WORLD, 100 + w->number);
        sched_yield();
    }
    if (r != DT_ERR_STATE)
        w->bad = "a limit cannot be set";
    return NULL;
}

/* Makes calls of every kind that has a limit. */
static int call_while_limits_change(int rank, void *arg)
{
    struct worker setters[THREADS] = { 0 };

    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int i = 0; i < THREADS; i++) {
        setters[i].number = i;
        NEED(pthread_create(&setters[i].thread, NULL, set_limits, &setters[i]) == 0);
    }
    for (int call = 0; call < CALLS; call++) {
        int64_t x = rank, y = rank, z = -1;
        dt_request_t requests[2];

        NEED(dt_iall_reduce(DT_WORLD, DT_IN_PLACE, &x, 1, DT_I64, DT_SUM, requests) == DT_OK);
        NEED(dt_irecv(DT_WORLD, &z, 1, DT_I64, 1 - rank, requests + 1) == DT_OK);
        NEED(dt_all_reduce(DT_WORLD, DT_IN_PLACE, &y, 1, DT_I64, DT_SUM) == DT_OK);
        NEED(dt_send(DT_WORLD, &y, 1, DT_I64, 1 - rank) == DT_OK);
        NEED(dt_wait_all(requests, 2) == DT_OK);
        NEED(x == ranks_sum(0) && y == x && z == x);
    }
    NEED(dt_finalize() == DT_OK);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(setters[i].thread, NULL);
        NEED(!setters[i].bad);
    }
    return 0;
}

static void timeouts_may_be_set_while_calls_are_made(void **state)
{
    (void)state;
    testjob_must_pass("2", call_while_limits_change, NULL);
    testjob_must_pass("1 1", call_while_limits_change, NULL);
}

/* ---- signal handlers ---- */

static struct {
    int rank, local_rank, local_size;
    _Atomic int known, wrong;
} asked;

static void ask_in_handler(int signo)
{
    (void)signo;
    if (dt_size() < 0) {
        asked.wrong += dt_rank() != -1 || dt_local_rank() != -1 || dt_local_size() != -1 ||
                       dt_generation() != -1;
        return;
    }
    asked.known++;
    asked.wrong += dt_size() != 2 || dt_rank() != asked.rank ||
                   dt_local_rank() != asked.local_rank || dt_local_size() != asked.local_size ||
                   dt_generation() < 0;
}

/* Makes calls that take locks. Stores the smallest number of interruptions of any rank. */
static int call_on(int32_t *interrupted)
{
    dt_request_t request;
    dt_comm_t *comm;

    NEED(dt_comm_dup(DT_WORLD, &comm) == DT_OK && dt_comm_set_timeout(comm, 100) == DT_OK);
    *interrupted = asked.known;
    NEED(dt_iall_reduce(comm, DT_IN_PLACE, interrupted, 1, DT_I32, DT_MIN, &request) == DT_OK);
    NEED(dt_wait(&request) == DT_OK && dt_barrier(comm) == DT_OK);
    NEED(dt_broadcast(comm, NULL, 1, DT_I32, 0) == DT_ERR_ARG && *dt_last_error());
    NEED(dt_comm_free(comm) == DT_OK);
    return 0;
}

static int call_while_handlers_ask(int rank, void *hosts)
{
    const struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { 0 };
    int32_t interrupted = 0;

    asked.rank = rank;
    asked.local_rank = hosts ? 0 : rank;
    asked.local_size = hosts ? 1 : 2;
    NEED(sigaction(SIGALRM, &(struct sigaction){ .sa_handler = ask_in_handler }, NULL) == 0);
    NEED(setitimer(ITIMER_REAL, &often, NULL) == 0);
    NEED(dt_init() == DT_OK);
    while (interrupted < 200)
        NEED(call_on(&interrupted) == 0);
    NEED(dt_finalize() == DT_OK);
    NEED(setitimer(ITIMER_REAL, &never, NULL) == 0);
    NEED(asked.wrong == 0);
    return 0;
}

static void a_signal_handler_may_ask_for_rank_and_size(void **state)
{
    struct testjob_plan two = { .hosts = "2", .body = call_while_handlers_ask };
    struct testjob_plan apart = { .hosts = "1 1", .body = call_while_handlers_ask, .arg = &two };

    (void)state;
    assert_int_equal(testjob_pass(&two), 0);
    assert_int_equal(testjob_pass(&apart), 0);
}

/* ---- requests ---- */

static void *wait_for_anothers(void *arg)
{
    struct worker *w = arg;
    int done = 0;

    while (w->number % 2 && !done && dt_test(&w->request, &done) == DT_OK)
        sched_yield();
    if (dt_wait(&w->request) != DT_OK)
        w->bad = "wait fails";
    for (int64_t i = 0; i < COUNT; i++) {
        if (w->data[i] != ranks_sum(i))
            w->bad = "wrong sum";
    }
    return NULL;
}

static int ask_for_others(int rank, void *arg)
{
    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int call = 0; call < CALLS; call++) {
        for (int i = 0; i < THREADS; i++) {
            for (int64_t k = 0; k < COUNT; k++)
                workers[i].data[k] = rank + k;
            NEED(dt_iall_reduce(DT_WORLD, DT_IN_PLACE, workers[i].data, COUNT, DT_I64, DT_SUM,
                                &workers[i].request) == DT_OK);
        }
        NEED_ALL(wait_for_anothers);
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void any_thread_may_wait_for_a_request(void **state)
{
    (void)state;
    testjob_must_pass("2", ask_for_others, NULL);
}

/* ---- buckets and memory ---- */

static void *fill_bucket(void *arg)
{
    struct worker *w = arg;
    dt_bucket_t *bucket;

    if (dt_bucket_create(w->comm, 2000, DT_I64, DT_SUM, &bucket) != DT_OK) {
        w->bad = "create fails";
        return NULL;
    }
    for (int call = 0; call < CALLS && !w->bad; call++) {
        for (int64_t k = 0; k < COUNT; k++)
            w->data[k] = dt_rank() + k;
        for (int k = 0; k < COUNT; k += 50) {
            if (dt_bucket_push(bucket, w->data + k, 50) != DT_OK)
                w->bad = "push fails";
        }
        if (dt_bucket_wait(bucket) != DT_OK)
            w->bad = "wait fails";
        for (int64_t k = 0; k < COUNT; k++) {
            if (w->data[k] != ranks_sum(k))
                w->bad = "wrong sum";
        }
    }
    dt_bucket_free(bucket);
    return NULL;
}

static void *use_memory(void *arg)
{
    struct worker *w = arg;
    int64_t *mine;
    void *more = NULL;

    for (int call = 0; call < CALLS && !w->bad; call++) {
        if (dt_mem_alloc(w->comm, sizeof w->data, &more) != DT_OK) {
            w->bad = "alloc fails";
            return NULL;
        }
        mine = more;
        mine[COUNT - 1] = dt_rank();
        if (dt_all_reduce(w->comm, DT_IN_PLACE, mine, COUNT, DT_I64, DT_SUM) != DT_OK ||
            mine[COUNT - 1] != ranks_sum(0))
            w->bad = "wrong sum";
        if (dt_mem_free(more) != DT_OK)
            w->bad = "free fails";
    }
    if (dt_mem_free(w->memory) != DT_OK)
        w->bad = "what another thread has got cannot be freed";
    return NULL;
}

static int own_buckets_and_memory(int rank, void *arg)
{
    (void)rank;
    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int i = 0; i < THREADS; i++) {
        NEED(dt_comm_dup(DT_WORLD, &workers[i].comm) == DT_OK);
        NEED(dt_mem_alloc(DT_WORLD, 5000, &workers[i].memory) == DT_OK);
    }
    NEED_ALL(fill_bucket);
    NEED_ALL(use_memory);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void threads_have_buckets_and_memory(void **state)
{
    (void)state;
    testjob_must_pass("2", own_buckets_and_memory, NULL);
}

/* ---- errors ---- */

static void *fail_apart(void *arg)
{
    struct worker *w = arg;
    char want[64];

    if (*dt_last_error())
        w->bad = "begins with an error";
    snprintf(want, sizeof want, "dt_broadcast: root %d is not one", 100 + w->number);
    for (int call = 0; call < CALLS && !w->bad; call++) {
        if (dt_broadcast(DT_WORLD, w->data, 1, DT_I64, 100 + w->number) != DT_ERR_ARG ||
            strncmp(dt_last_error(), want, strlen(want)) != 0)
            w->bad = "has another thread's error";
    }
    return NULL;
}

static int fail_together(int rank, void *arg)
{
    (void)rank;
    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED_ALL(fail_apart);
    NEED(!*dt_last_error());
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void each_thread_has_its_own_last_error(void **state)
{
    (void)state;
    testjob_must_pass("2", fail_together, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_may_initialise_and_another_finalise),
        cmocka_unit_test(a_child_that_is_forked_during_dt_init_is_no_rank),
        cmocka_unit_test(a_child_whose_parent_is_no_rank_may_be_one),
        cmocka_unit_test(channels_are_chosen_while_thresholds_change),
        cmocka_unit_test(each_thread_may_have_its_communicator),
        cmocka_unit_test(any_thread_may_abort_dump_and_ask),
        cmocka_unit_test(timeouts_may_be_set_while_calls_are_made),
        cmocka_unit_test(a_signal_handler_may_ask_for_rank_and_size),
        cmocka_unit_test(any_thread_may_wait_for_a_request),
        cmocka_unit_test(threads_have_buckets_and_memory),
        cmocka_unit_test(each_thread_has_its_own_last_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
