/* Calls in the background: requests and buckets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/dtrun.h"
#include "tests/unit/checks.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/testjob.h"

enum { MANY = 64, COUNT = 1000, TENSORS = 40 };

static const char *const placements[] = { "1", "2", "3 1" };

static void run_all(int (*body)(int rank, void *arg))
{
    for (size_t p = 0; p < sizeof placements / sizeof *placements; p++) {
        struct testjob_plan plan = { .hosts = placements[p], .body = body };

        assert_int_equal(testjob_pass(&plan), 0);
    }
}

/* The sum over all ranks of rank + i. */
static int64_t sum(int64_t i)
{
    return dt_size() * i + dt_size() * (dt_size() - 1) / 2;
}

/* ---- requests ---- */

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
            NEED(buffers[k][i] == sum(i + k));
    }
    return 0;
}

/* Every rank waits in an order of its own, or for all, or asks until all are done. */
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

/* Calls of both kinds by turns: were their order not kept, calls of ranks would not fit. */
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
        NEED(a == sum(0) && b == dt_size() - 1 && c == dt_size() - 1);
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void calls_keep_the_order_in_which_they_were_made(void **state)
{
    (void)state;
    run_all(mix_with_others);
}

/* All kinds under way together; what the calls were told is gone by the time they are made. */
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
    NEED(y[0][0] == sum(0) && f == 3 * (float)n && x[2][0] == dt_size() - 1);
    NEED((rank || y[3][0] == dt_size() - 1) && y[4][0] == sum(0));
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
    NEED(dt_wait(&request) == DT_OK && x == sum(0));
    NEED(dt_wait(&copy) == DT_ERR_ARG && strstr(dt_last_error(), "waited for already"));
    NEED(dt_finalize() == DT_OK);
    return 0;
}

/* ---- memory of buckets ---- */

enum { PIECES = 30, PIECE = 100, SETTLED = 8 };

/* Calls of dt_mem_alloc that the recorder has; -1: it could not be read. */
static int allocations(void)
{
    char path[64], text[32768] = "";
    int n = 0;
    FILE *f;

    snprintf(path, sizeof path, "/tmp/dtrun-async-%d.jsonl", (int)getpid());
    if (dt_recorder_dump(path) != DT_OK || !(f = fopen(path, "r")))
        return -1;
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    unlink(path);
    for (const char *at = text; (at = strstr(at, "\"kind\":\"dt_mem_alloc\"")); at++)
        n++;
    return n / 2; /* two calls each: to meet, and to hear of all */
}

/* n pieces, of which two make a bucket: first they are all under way at a time. */
static bool push_and_wait(dt_bucket_t *bucket, int n, int64_t ranks)
{
    static int64_t data[PIECES][PIECE];
    bool right = true;

    for (int i = 0; i < n; i++) {
        for (int k = 0; k < PIECE; k++)
            data[i][k] = i + k;
        right = right && dt_bucket_push(bucket, data[i], PIECE) == DT_OK;
    }
    right = right && dt_bucket_wait(bucket) == DT_OK;
    for (int i = 0; ranks && i < n; i++) {
        for (int k = 0; k < PIECE; k++)
            right = right && data[i][k] == ranks * (i + k);
    }
    return right;
}

static int share_buckets(int rank, void *arg)
{
    const char *hosts = arg;
    int shared = strcmp(hosts, "2") == 0;
    dt_bucket_t *bucket;
    dt_comm_t *comm;

    NEED(dt_init() == DT_OK);
    NEED(dt_bucket_create(DT_WORLD, 2 * PIECE * sizeof(int64_t), DT_I64, DT_SUM, &bucket) == DT_OK);
    NEED(push_and_wait(bucket, 2 * SETTLED - 2, dt_size()) && allocations() == 0);
    NEED(push_and_wait(bucket, 2, dt_size()) && allocations() == shared);
    for (int again = 0; again < 3; again++)
        NEED(push_and_wait(bucket, PIECES, dt_size()) && allocations() == shared);
    NEED(dt_bucket_free(bucket) == DT_OK);

    /* Where ranks have made different numbers of calls they agree again. */
    NEED(dt_comm_dup(DT_WORLD, &comm) == DT_OK);
    NEED(dt_bucket_create(comm, 2 * PIECE * sizeof(int64_t), DT_I64, DT_SUM, &bucket) == DT_OK);
    NEED(dt_join_begin(comm) == DT_OK);
    NEED(push_and_wait(bucket, rank == 0 ? PIECES : 2, 0));
    NEED(dt_join(comm, NULL) == DT_OK);
    NEED(push_and_wait(bucket, PIECES, dt_size()));
    NEED(push_and_wait(bucket, PIECES, dt_size()) && allocations() == 2 * shared);
    NEED(dt_finalize() == DT_OK);
    NEED(dt_bucket_free(bucket) == DT_OK);
    return 0;
}

static void buckets_have_memory_that_all_can_reach(void **state)
{
    (void)state;
    for (size_t p = 0; p < sizeof placements / sizeof *placements; p++) {
        struct testjob_plan plan = { .hosts = placements[p], .body = share_buckets };

        plan.arg = (void *)(uintptr_t)placements[p];
        assert_int_equal(testjob_pass(&plan), 0);
    }
}

/* What is mapped by every rank is not to grow with the square of their number. */
static int ask_for_much(int rank, void *arg)
{
    int64_t data = rank;
    dt_bucket_t *bucket;

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_bucket_create(DT_WORLD, 16 << 20, DT_I64, DT_SUM, &bucket) == DT_OK);
    for (int i = 0; i < SETTLED; i++)
        NEED(dt_bucket_push(bucket, &data, 1) == DT_OK && dt_bucket_wait(bucket) == DT_OK);
    NEED(allocations() == 0);
    NEED(dt_bucket_free(bucket) == DT_OK);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void many_ranks_have_no_large_buckets_in_common(void **state)
{
    struct testjob_plan plan = { .hosts = "20", .body = ask_for_much };

    (void)state;
    assert_int_equal(testjob_pass(&plan), 0);
}

/* ---- a child of the rank's process ---- */

static bool is_told_so(dt_result_t r)
{
    return r == DT_ERR_STATE && strstr(dt_last_error(), "forked");
}

static int spoil(dt_bucket_t *bucket, dt_request_t request)
{
    int64_t wrong[PIECE] = { 0 };
    dt_bucket_t *other;
    int done;

    alarm(60); /* what waits here for calls that nobody makes does so for ever */
    NEED(is_told_so(dt_bucket_push(bucket, wrong, PIECE / 2)));
    NEED(is_told_so(dt_bucket_wait(bucket)));
    NEED(is_told_so(dt_bucket_free(bucket)));
    NEED(is_told_so(dt_bucket_create(DT_WORLD, 0, DT_I64, DT_SUM, &other)));
    NEED(is_told_so(dt_test(&request, &done)));
    NEED(is_told_so(dt_wait_for(&request, 0.01, &done)));
    NEED(is_told_so(dt_wait(&request)));
    return 0;
}

static int fork_one(int rank, void *arg)
{
    int64_t data[2][PIECE], one = 1;
    dt_bucket_t *bucket;
    dt_request_t request;
    pid_t pid;
    int status;

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_bucket_create(DT_WORLD, 2 * sizeof *data, DT_I64, DT_SUM, &bucket) == DT_OK);
    NEED(push_and_wait(bucket, PIECES, dt_size()));
    for (int k = 0; k < PIECE; k++)
        data[0][k] = data[1][k] = rank + k;
    if (rank == 0)
        NEED(dt_iall_reduce(DT_WORLD, DT_IN_PLACE, &one, 1, DT_I64, DT_SUM, &request) == DT_OK);
    NEED(dt_bucket_push(bucket, data[0], PIECE) == DT_OK);
    pid = rank == 0 ? fork() : 0;
    if (rank == 0 && pid == 0)
        _exit(spoil(bucket, request));
    NEED(rank != 0 || (waitpid(pid, &status, 0) == pid && status == 0));
    if (rank != 0)
        NEED(dt_iall_reduce(DT_WORLD, DT_IN_PLACE, &one, 1, DT_I64, DT_SUM, &request) == DT_OK);
    NEED(dt_bucket_push(bucket, data[1], PIECE) == DT_OK);
    NEED(dt_wait(&request) == DT_OK && one == dt_size());
    NEED(dt_bucket_free(bucket) == DT_OK);
    for (int k = 0; k < PIECE; k++)
        NEED(data[0][k] == sum(k) && data[1][k] == sum(k));
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void a_child_of_a_rank_neither_fills_nor_awaits(void **state)
{
    (void)state;
    run_all(fork_one);
}

/* Each is given a type that there is none of. */
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

static void the_call_that_was_written_is_named(void **state)
{
    (void)state;
    run_all(name_calls);
}

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

/* Those of a sanitizer come with the first one of the program. */
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
        NEED(dt_barrier(DT_WORLD) == DT_OK); /* nobody is given anything before */
        NEED(dt_send(comm, &taken, 1, DT_I64, (rank + n - 1) % n) == DT_OK);
        NEED(dt_wait(&pending) == DT_OK);
    }
    NEED(dt_iall_reduce(comm, DT_IN_PLACE, &z, 1, DT_I64, DT_SUM, &later) == DT_OK);
    NEED(dt_wait(&later) == DT_OK); /* and so is what was asked for before it */
    NEED(dt_finalize() == DT_OK);
    while (count_threads() > threads) /* one that was joined may be listed for a moment */
        sched_yield();
    NEED(dt_barrier(comm) == DT_ERR_STATE);
    NEED(dt_test(&request, &done) == DT_OK && done && x == sum(0));
    NEED(dt_bucket_push(bucket, y, 2) == DT_OK);
    NEED(dt_bucket_free(bucket) == DT_ERR_STATE);
    memory[4095] = 1;
    NEED(dt_mem_free(memory) == DT_OK);
    return 0;
}

static void what_is_left_at_the_end_does_no_harm(void **state)
{
    (void)state;
    run_all(leave_things);
}

static void misuse_is_told_and_harms_nothing(void **state)
{
    (void)state;
    run_all(misuse);
}

static _Atomic int *refused;

/* Rank 1 comes to the call when rank 0 has been refused. */
static int leave_too_early(int rank, void *arg)
{
    int64_t x = rank;
    dt_request_t request;

    (void)arg;
    NEED(dt_init() == DT_OK);
    if (rank == 0) {
        NEED(dt_iall_reduce(DT_WORLD, DT_IN_PLACE, &x, 1, DT_I64, DT_SUM, &request) == DT_OK);
        NEED(dt_finalize() == DT_ERR_STATE);
        *refused = 1;
        NEED(dt_wait(&request) == DT_OK);
    } else {
        while (!*refused)
            usleep(500);
        NEED(dt_all_reduce(DT_WORLD, DT_IN_PLACE, &x, 1, DT_I64, DT_SUM) == DT_OK);
    }
    NEED(x == sum(0) && dt_finalize() == DT_OK);
    return 0;
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

static void a_failure_is_told_by_the_wait(void **state)
{
    (void)state;
    run_all(disagree);
}

/* ---- buckets ---- */

struct tensor {
    int64_t *data;
    size_t count;
};

/* Of sizes around that of the bucket: smaller, as large, larger, and none at all. */
static int push_all(dt_bucket_t *b, struct tensor *t, size_t cap)
{
    size_t counts[] = { 1, 7, 0, cap / 8, cap / 8 - 1, cap / 8 + 1, 3 * cap / 8, cap / 16, 1 };

    for (int k = 0; k < TENSORS; k++) {
        t[k].count = counts[(size_t)k % (sizeof counts / sizeof *counts)];
        t[k].data = malloc((t[k].count + 1) * sizeof *t[k].data);
        NEED(t[k].data);
        for (size_t i = 0; i < t[k].count; i++)
            t[k].data[i] = dt_rank() + (int64_t)i + k;
        t[k].data[t[k].count] = 4711;
        NEED(dt_bucket_push(b, t[k].data, t[k].count) == DT_OK);
    }
    return 0;
}

static int fill_buckets(int rank, void *arg)
{
    struct tensor t[TENSORS];
    dt_bucket_t *b;

    (void)rank;
    (void)arg;
    NEED(dt_init() == DT_OK);
    for (size_t cap = 64; cap <= 65536; cap *= 32) {
        NEED(dt_bucket_create(DT_WORLD, cap, DT_I64, DT_SUM, &b) == DT_OK);
        for (int step = 0; step < 3; step++) {
            NEED(push_all(b, t, cap) == 0);
            NEED(dt_bucket_wait(b) == DT_OK);
            for (int k = 0; k < TENSORS; k++) {
                for (size_t i = 0; i < t[k].count; i++)
                    NEED(t[k].data[i] == sum((int64_t)i + k));
                NEED(t[k].data[t[k].count] == 4711);
                free(t[k].data);
            }
        }
        NEED(dt_bucket_wait(b) == DT_OK);
        NEED(dt_bucket_free(b) == DT_OK);
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void buckets_reduce_what_is_pushed(void **state)
{
    (void)state;
    run_all(fill_buckets);
}

/* One call for all of it, or one for each piece: element by element the same is folded. */
static int compare_bytes(int rank, void *arg)
{
    static float fused[COUNT], apart[COUNT];
    dt_bucket_t *b;

    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int i = 0; i < COUNT; i++)
        fused[i] = apart[i] = 1.0F / (float)(3 + rank + i);
    NEED(dt_bucket_create(DT_WORLD, 0, DT_F32, DT_AVG, &b) == DT_OK);
    for (int at = 0; at < COUNT; at += 100)
        NEED(dt_bucket_push(b, fused + at, 100) == DT_OK);
    NEED(dt_bucket_free(b) == DT_OK);
    for (int at = 0; at < COUNT; at += 100)
        NEED(dt_all_reduce(DT_WORLD, DT_IN_PLACE, apart + at, 100, DT_F32, DT_AVG) == DT_OK);
    NEED(memcmp(fused, apart, sizeof fused) == 0);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void a_bucket_gives_the_bytes_of_single_calls(void **state)
{
    (void)state;
    run_all(compare_bytes);
}

static int bucket_misuse(int rank, void *arg)
{
    int64_t x[9] = { 0 };
    dt_bucket_t *b = NULL;
    bool alone;

    (void)arg;
    NEED(dt_init() == DT_OK);
    alone = dt_size() == 1;
    NEED(dt_bucket_create(DT_WORLD, 0, DT_F32, DT_BAND, &b) == DT_ERR_ARG && !b);
    NEED(dt_bucket_create(DT_WORLD, 0, (dt_dtype_t)99, DT_SUM, &b) == DT_ERR_ARG);
    NEED(dt_bucket_create(DT_WORLD, 0, DT_I64, DT_SUM, NULL) == DT_ERR_ARG);
    NEED(dt_bucket_push(NULL, x, 1) == DT_ERR_ARG);
    NEED(dt_bucket_wait(NULL) == DT_ERR_ARG && dt_bucket_free(NULL) == DT_OK);
    NEED(dt_bucket_create(DT_WORLD, 64, DT_I64, DT_SUM, &b) == DT_OK);
    NEED(dt_bucket_push(b, NULL, 1) == DT_ERR_ARG);
    NEED(dt_bucket_push(b, x, SIZE_MAX / 2) == DT_ERR_ARG);
    NEED(dt_bucket_push(b, x, rank ? 3 : 2) == DT_OK);
    NEED(dt_bucket_wait(b) == (alone ? DT_OK : DT_ERR_MISMATCH));
    NEED(dt_bucket_push(b, x, 9) == (alone ? DT_OK : DT_ERR_MISMATCH));
    NEED(dt_bucket_free(b) == (alone ? DT_OK : DT_ERR_MISMATCH));
    NEED(dt_finalize() == (alone ? DT_OK : DT_ERR_MISMATCH));
    return 0;
}

static void a_bucket_keeps_its_first_failure(void **state)
{
    (void)state;
    run_all(bucket_misuse);
}

/* ---- threads and signals ---- */

static volatile sig_atomic_t caught;
static pthread_t catcher;

static void catch (int signo)
{
    (void)signo;
    caught += pthread_equal(pthread_self(), catcher) ? 1 : 1000;
}

/* A signal for the process never interrupts the thread that the program does not know of. */
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

/* Threads that wait for copies of one request: one of them gets it. */
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

static void a_request_is_waited_for_once(void **state)
{
    (void)state;
    run_all(compete);
}

static void the_job_is_left_only_after_the_last_request(void **state)
{
    struct testjob_plan plan = { .hosts = "2", .body = leave_too_early };

    (void)state;
    refused = testjob_shared(4096);
    assert_int_equal(testjob_pass(&plan), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKS("25", requests_may_be_waited_for_in_any_order),
        cmocka_unit_test(calls_keep_the_order_in_which_they_were_made),
        cmocka_unit_test(every_collective_can_be_made_in_the_background),
        cmocka_unit_test(the_call_that_was_written_is_named),
        cmocka_unit_test(what_is_left_at_the_end_does_no_harm),
        cmocka_unit_test(misuse_is_told_and_harms_nothing),
        cmocka_unit_test(a_request_is_waited_for_once),
        cmocka_unit_test(the_job_is_left_only_after_the_last_request),
        cmocka_unit_test(a_failure_is_told_by_the_wait),
        cmocka_unit_test(buckets_reduce_what_is_pushed),
        cmocka_unit_test(buckets_have_memory_that_all_can_reach),
        cmocka_unit_test(many_ranks_have_no_large_buckets_in_common),
        cmocka_unit_test(a_child_of_a_rank_neither_fills_nor_awaits),
        CHECKS("19", a_bucket_gives_the_bytes_of_single_calls),
        cmocka_unit_test(a_bucket_keeps_its_first_failure),
        CHECKS("26", signals_are_left_to_the_program),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
