/* What a rank reports for each kind of failure: which rank it blames, for which call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/api/context.h"
#include "tests/unit/faults.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/testjob.h"

struct blame {
    dt_result_t code;
    int rank; /* -1: not known */
    uint64_t call;
    const char *operation, *comm;
};

static bool blames(const struct blame *b)
{
    dt_error_info_t i = { .size = sizeof i };
    char host[16];

    snprintf(host, sizeof host, "host%d", b->rank);
    if (dt_last_error_info(&i) == DT_OK && i.code == b->code && i.rank == b->rank &&
        i.call == b->call && strcmp(i.operation, b->operation) == 0 &&
        strcmp(i.comm, b->comm) == 0 && strcmp(i.host, b->rank < 0 ? "" : host) == 0 &&
        strcmp(i.message, dt_last_error()) == 0 && *i.message)
        return true;
    fprintf(stderr, "%s is told as code %d, rank %d, host '%s', call %llu, '%s' on '%s'\n",
            i.message, i.code, i.rank, i.host, (unsigned long long)i.call, i.operation, i.comm);
    return false;
}

#define BLAMES(...) NEED(blames(&(struct blame){ __VA_ARGS__ }))

/* Does what agents do when dtrun has waited long enough. */
static void time_out(struct dt_comm *c, void *arg)
{
    (void)arg;
    dt_comm_stop(c, DT_ERR_TIMEOUT, 1, "rank 0 has waited for rank 1");
}

/* Rank 1 is to blame for every error on all ranks. Each rank has a host of its own. */
static int fail_in_every_way(int rank, void *arg)
{
    dt_all_reduce_options_t options = { .size = 1 };
    dt_comm_t *comm;
    dt_request_t q;
    float x[4] = { 0 };
    void *p;

    NEED(dt_barrier(DT_WORLD) == DT_ERR_STATE);
    BLAMES(DT_ERR_STATE, -1, 0, "barrier", "");
    NEED(dt_init() == DT_OK);
    NEED(dt_broadcast(DT_WORLD, x, 1, DT_F32, 9) == DT_ERR_ARG);
    BLAMES(DT_ERR_ARG, rank, 0, "broadcast", "world");
    NEED(dt_isend(DT_WORLD, x, 1, DT_F32, dt_size(), &q) == DT_ERR_ARG);
    BLAMES(DT_ERR_ARG, rank, 0, "send", "world");
    NEED(dt_all_reduce_with(DT_WORLD, x, x, 1, DT_F32, DT_SUM, &options) == DT_ERR_VERSION);
    BLAMES(DT_ERR_VERSION, rank, 0, "all-reduce", "world");
    NEED(dt_mem_alloc(DT_WORLD, SIZE_MAX / 2, &p) == DT_ERR_NOMEM);
    BLAMES(DT_ERR_NOMEM, 0, 3, "dt_mem_alloc", "world");
    NEED(dt_comm_dup(DT_WORLD, &comm) == DT_OK);
    NEED(dt_join_begin(comm) == DT_OK);
    NEED(dt_broadcast(comm, x, 1, DT_F32, 0) == DT_ERR_UNSUPPORTED);
    BLAMES(DT_ERR_UNSUPPORTED, rank, 0, "broadcast", "0.1");
    NEED(dt_comm_dup(DT_WORLD, &comm) == DT_OK);
    if (rank == 1)
        NEED(dt_comm_abort(comm) == DT_OK);
    NEED(dt_barrier(comm) == DT_ERR_ABORTED);
    BLAMES(DT_ERR_ABORTED, 1, 2, "barrier", "0.2");
    NEED(dt_comm_dup(DT_WORLD, &comm) == DT_OK);
    NEED((rank == 1 ? dt_barrier(comm) : dt_broadcast(comm, x, 2, DT_F32, 0)) == DT_ERR_MISMATCH);
    BLAMES(DT_ERR_MISMATCH, !rank, 2, rank == 1 ? "barrier" : "broadcast", "0.3");
    NEED(dt_comm_dup(DT_WORLD, &comm) == DT_OK);
    if (rank == 1)
        NEED(dt_context_visit("test", comm, time_out, NULL) == DT_OK);
    NEED(dt_barrier(comm) == DT_ERR_TIMEOUT);
    BLAMES(DT_ERR_TIMEOUT, 1, 2, "barrier", "0.4");
    NEED(dt_barrier(DT_WORLD) == DT_OK);
    testjob_meet(arg, 2);
    if (rank == 1)
        raise(SIGKILL);
    NEED(dt_reduce(DT_WORLD, x, x + 2, 2, DT_F32, DT_SUM, 0) == DT_ERR_PEER);
    BLAMES(DT_ERR_PEER, 1, 9, "reduce", "world");
    return 0;
}

static void every_kind_of_failure_names_rank_host_call_and_operation(void **state)
{
    static struct testjob_result result;
    struct testjob_plan plan = { .hosts = "1 1", .body = fail_in_every_way };

    (void)state;
    plan.arg = testjob_shared(sizeof(_Atomic int));
    assert_int_equal(testjob_run(&plan, &result), 0);
    assert_int_equal(result.ranks[0].status, 0);
    assert_true(WIFSIGNALED(result.ranks[1].status));
}

struct watch {
    _Atomic int begun; /* ranks that have left dt_init */
    _Atomic bool seen; /* rank 0 is inside its call */
};

/* Dumps until the call in which the other thread waits is visible. Then the rank it waits for may
 * die. */
static void *look_on(void *arg)
{
    struct watch *watch = arg;
    char path[] = "/tmp/dtrun-blame-XXXXXX.jsonl", text[8192];
    bool made = close(mkstemps(path, 6)) == 0;

    while (made && !watch->seen && dt_recorder_dump(path) == DT_OK) {
        FILE *f = fopen(path, "r");
        size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
        const char *call;

        text[n] = '\0';
        if (f)
            fclose(f);
        call = strstr(text, "\"kind\":\"barrier\"");
        if (call && !strstr(call, "result"))
            watch->seen = true;
    }
    unlink(path);
    return NULL;
}

static int die_in_a_call(int rank, void *arg)
{
    dt_error_info_t info = { .size = sizeof info };
    struct watch *watch = arg;
    pthread_t thread;

    NEED(dt_init() == DT_OK);
    testjob_meet(&watch->begun, 3);
    if (rank == 2) {
        while (!watch->seen)
            usleep(1000);
        raise(SIGKILL);
    }
    if (rank == 0)
        NEED(pthread_create(&thread, NULL, look_on, arg) == 0);
    NEED(dt_barrier(DT_WORLD) == DT_ERR_PEER);
    if (rank == 0)
        pthread_join(thread, NULL);
    NEED(dt_barrier(DT_WORLD) == DT_ERR_PEER);
    NEED(dt_last_error_info(&info) == DT_OK && info.code == DT_ERR_PEER && info.rank == 2);
    NEED(strcmp(info.host, "host1") == 0 && strcmp(info.operation, "barrier") == 0);
    NEED(info.call == 2 && info.signal == SIGKILL && info.status == -1);
    NEED(strstr(info.message, "barrier, call 2: rank 2 (host1) died or left (killed by signal 9)"));
    return 0;
}

static void a_death_is_reported_with_its_host(void **state)
{
    struct testjob_result result;
    struct testjob_plan plan = { .hosts = "2 1", .body = die_in_a_call };

    (void)state;
    plan.arg = testjob_shared(sizeof(struct watch));
    assert_int_equal(testjob_run(&plan, &result), 0);
    assert_int_equal(result.ranks[0].status, 0);
    assert_int_equal(result.ranks[1].status, 0);
}

/* ---- rank 1 lacks memory for the copy that a call needs, while the others wait for it there
 * ---- */

static dt_result_t all_to_all_in_place(dt_comm_t *comm, int rank, float *x, float *y)
{
    return dt_all_to_all(comm, rank == 1 ? DT_IN_PLACE : x, y, 2, DT_F32);
}

static dt_result_t all_to_allv_in_place(dt_comm_t *comm, int rank, float *x, float *y)
{
    const size_t counts[] = { 1, 1, 1 };

    return dt_all_to_allv(comm, rank == 1 ? DT_IN_PLACE : x, counts, y, counts, DT_F32);
}

static dt_result_t reduce_to_another(dt_comm_t *comm, int rank, float *x, float *y)
{
    (void)rank;
    return dt_reduce(comm, x, y, 2, DT_F32, DT_SUM, 0);
}

static dt_result_t reduce_scatter(dt_comm_t *comm, int rank, float *x, float *y)
{
    (void)rank;
    return dt_reduce_scatter(comm, x, y, 2, DT_F32, DT_SUM);
}

static dt_result_t adasum_of_few(dt_comm_t *comm, int rank, float *x, float *y)
{
    (void)rank;
    return dt_all_reduce(comm, x, y, 6, DT_F32, DT_ADASUM);
}

static dt_result_t adasum_of_many(dt_comm_t *comm, int rank, float *x, float *y)
{
    static float many[5000];

    (void)rank, (void)x, (void)y;
    return dt_all_reduce(comm, DT_IN_PLACE, many, 5000, DT_F32, DT_ADASUM);
}

static const struct copying {
    const char *operation, *hosts, *who;
    dt_result_t (*call)(dt_comm_t *comm, int rank, float *x, float *y);
    uint64_t steps; /* the number of calls it counts as */
} copyings[] = {
    { "all-to-all", "3", "rank 1 (host0)", all_to_all_in_place, 1 },
    { "all-to-all", "1 2", "rank 1 (host1)", all_to_all_in_place, 1 },
    { "all-to-allv", "2 1", "rank 1 (host0)", all_to_allv_in_place, 1 },
    { "reduce", "1 1 1", "rank 1 (host1)", reduce_to_another, 1 },
    { "reduce-scatter", "2 1", "rank 1 (host0)", reduce_scatter, 1 },
    { "all-reduce", "4", "rank 1 (host0)", adasum_of_few, 1 },
    { "all-reduce", "1 3", "rank 1 (host1)", adasum_of_few, 1 },
    { "all-reduce", "2", "rank 1 (host0)", adasum_of_many, 3 },
    { "all-reduce", "1 1", "rank 1 (host1)", adasum_of_many, 3 },
};

static bool names_once(const char *text, const char *who)
{
    const char *first = strstr(text, who);

    return first && !strstr(first + 1, who);
}

static int lack_memory(int rank, void *arg)
{
    static const struct fault fault = { "malloc", ENOMEM, false };
    const struct copying *copying = arg;
    dt_error_info_t info = { .size = sizeof info };
    dt_comm_t *comm;
    float x[6] = { 0 }, y[6] = { 0 };

    NEED(dt_init() == DT_OK && dt_comm_dup(DT_WORLD, &comm) == DT_OK);
    NEED(copying->call(comm, 0, x, y) ==
         DT_OK); /* so that everything the call needs exists except the copy */
    NEED(dt_barrier(DT_WORLD) == DT_OK); /* a failure may end a call that others are still in */
    if (rank == 1)
        faults_arm(&fault, 1);
    NEED(copying->call(comm, rank, x, y) == DT_ERR_NOMEM);
    faults_disarm();
    NEED(dt_last_error_info(&info) == DT_OK && info.code == DT_ERR_NOMEM && info.rank == 1);
    NEED(strcmp(info.operation, copying->operation) == 0 && info.call == 2 + copying->steps);
    NEED(strcmp(info.comm, "0.1") == 0 && names_once(info.message, copying->who));
    NEED(strcmp(strrchr(info.message, ':'), ": out of memory") == 0);
    NEED(dt_barrier(comm) == DT_ERR_NOMEM && dt_comm_free(comm) == DT_ERR_NOMEM);
    NEED(dt_barrier(DT_WORLD) == DT_OK && dt_finalize() == DT_OK);
    return 0;
}

static void all_ranks_learn_which_rank_lacks_memory_for_a_copy(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof copyings / sizeof *copyings; i++) {
        struct copying copying = copyings[i];
        struct testjob_plan plan = { .hosts = copying.hosts, .body = lack_memory, .arg = &copying };

        if (testjob_pass(&plan) != 0)
            fail_msg("%s on %s", copying.operation, copying.hosts);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_failure_names_rank_host_call_and_operation),
        cmocka_unit_test(a_death_is_reported_with_its_host),
        cmocka_unit_test(all_ranks_learn_which_rank_lacks_memory_for_a_copy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
