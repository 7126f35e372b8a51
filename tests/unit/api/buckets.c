/* Buckets: pushed data comes back reduced, and where a bucket keeps it meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/dtrun.h"
#include "tests/unit/checks.h"
#include "tests/unit/faults.h"
#include "tests/unit/forbid.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/testjob.h"

enum { COUNT = 1000, TENSORS = 40 };
enum { GUARD = 4711 }; /* after each tensor: must not change */

static const char *const placements[] = { "1", "2", "3 1", NULL };

static void run_all(int (*body)(int rank, void *arg))
{
    assert_int_equal(testjob_pass_all(placements, body), 0);
}

struct tensor {
    int64_t *data;
    size_t count;
};

/* Pushes tensors that are smaller than the bucket, as large, larger, and empty. */
static int push_all(dt_bucket_t *b, struct tensor *t, size_t cap)
{
    size_t counts[] = { 1, 7, 0, cap / 8, cap / 8 - 1, cap / 8 + 1, 3 * cap / 8, cap / 16, 1 };

    for (int k = 0; k < TENSORS; k++) {
        t[k].count = counts[(size_t)k % (sizeof counts / sizeof *counts)];
        t[k].data = malloc((t[k].count + 1) * sizeof *t[k].data);
        NEED(t[k].data);
        for (size_t i = 0; i < t[k].count; i++)
            t[k].data[i] = dt_rank() + (int64_t)i + k;
        t[k].data[t[k].count] = GUARD;
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
                    NEED(t[k].data[i] == ranks_sum((int64_t)i + k));
                NEED(t[k].data[t[k].count] == GUARD);
                free(t[k].data);
            }
        }
        NEED(dt_bucket_wait(b) == DT_OK);
        NEED(dt_bucket_free(b) == DT_OK);
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void buckets_reduce_pushed_data(void **state)
{
    (void)state;
    run_all(fill_buckets);
}

/* Reduces the same values in a bucket and by single calls. */
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

/* ---- memory of buckets ---- */

/* A bucket asks for memory that the ranks of a host share when it is sent for the SETTLED-th time.
 */
enum { BUFFERS = 30, ELEMENTS = 100, SETTLED = 8 };

/* Returns the calls of dt_mem_alloc in the recorder. -1: it could not be read. */
static int allocations(void)
{
    char path[] = "/tmp/dtrun-async-XXXXXX.jsonl", text[32768] = "";
    int n = 0;
    FILE *f;

    if (close(mkstemps(path, 6)) != 0 || dt_recorder_dump(path) != DT_OK || !(f = fopen(path, "r")))
        return -1;
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    unlink(path);
    for (const char *at = text; (at = strstr(at, "\"kind\":\"dt_mem_alloc\"")); at++)
        n++;
    return n / 2; /* each is two calls: a barrier, and an exchange of the outcome */
}

/* Pushes n buffers, two of which fill a bucket. At first all are under way at the same time. */
static bool push_and_wait(dt_bucket_t *bucket, int n, int64_t ranks)
{
    static int64_t data[BUFFERS][ELEMENTS];
    bool ok = true;

    for (int i = 0; i < n; i++) {
        for (int k = 0; k < ELEMENTS; k++)
            data[i][k] = i + k;
        ok = ok && dt_bucket_push(bucket, data[i], ELEMENTS) == DT_OK;
    }
    ok = ok && dt_bucket_wait(bucket) == DT_OK;
    for (int i = 0; ranks && i < n; i++) {
        for (int k = 0; k < ELEMENTS; k++)
            ok = ok && data[i][k] == ranks * (i + k);
    }
    return ok;
}

static int share_buckets(int rank, void *arg)
{
    const char *hosts = arg;
    int shared = strcmp(hosts, "2") == 0;
    dt_bucket_t *bucket;
    dt_comm_t *comm;

    NEED(dt_init() == DT_OK);
    NEED(dt_bucket_create(DT_WORLD, 2 * ELEMENTS * sizeof(int64_t), DT_I64, DT_SUM, &bucket) ==
         DT_OK);
    NEED(push_and_wait(bucket, 2 * SETTLED - 2, dt_size()) && allocations() == 0);
    NEED(push_and_wait(bucket, 2, dt_size()) && allocations() == shared);
    for (int again = 0; again < 3; again++)
        NEED(push_and_wait(bucket, BUFFERS, dt_size()) && allocations() == shared);
    NEED(dt_bucket_free(bucket) == DT_OK);

    /* Ranks that have made different numbers of calls agree again here. */
    NEED(dt_comm_dup(DT_WORLD, &comm) == DT_OK);
    NEED(dt_bucket_create(comm, 2 * ELEMENTS * sizeof(int64_t), DT_I64, DT_SUM, &bucket) == DT_OK);
    NEED(dt_join_begin(comm) == DT_OK);
    NEED(push_and_wait(bucket, rank == 0 ? BUFFERS : 2, 0));
    NEED(dt_join(comm, NULL) == DT_OK);
    NEED(push_and_wait(bucket, BUFFERS, dt_size()));
    NEED(push_and_wait(bucket, BUFFERS, dt_size()) && allocations() == 2 * shared);
    NEED(dt_finalize() == DT_OK);
    NEED(dt_bucket_free(bucket) == DT_OK);
    return 0;
}

static void buckets_use_memory_that_all_ranks_of_a_host_share(void **state)
{
    (void)state;
    for (const char *const *p = placements; *p; p++) {
        struct testjob_plan plan = { .hosts = *p, .body = share_buckets };

        plan.arg = (void *)(uintptr_t)*p;
        assert_int_equal(testjob_pass(&plan), 0);
    }
}

/* The memory that all ranks map does not grow with the square of their number. */
static int make_large_bucket(int rank, void *arg)
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

static void many_ranks_do_not_share_large_buckets(void **state)
{
    (void)state;
    testjob_must_pass("20", make_large_bucket, NULL);
}

/* ---- a child of the rank's process ---- */

static bool is_refused_in_child(dt_result_t r)
{
    return r == DT_ERR_STATE && strstr(dt_last_error(), "forked");
}

static int try_all_calls(dt_bucket_t *bucket, dt_request_t request)
{
    int64_t wrong[ELEMENTS] = { 0 };
    dt_bucket_t *other;
    int done;

    alarm(180); /* ends a test that would wait for ever for calls that no rank makes */
    NEED(is_refused_in_child(dt_bucket_push(bucket, wrong, ELEMENTS / 2)));
    NEED(is_refused_in_child(dt_bucket_wait(bucket)));
    NEED(is_refused_in_child(dt_bucket_free(bucket)));
    NEED(is_refused_in_child(dt_bucket_create(DT_WORLD, 0, DT_I64, DT_SUM, &other)));
    NEED(is_refused_in_child(dt_test(&request, &done)));
    NEED(is_refused_in_child(dt_wait_for(&request, 0.01, &done)));
    NEED(is_refused_in_child(dt_wait(&request)));
    return 0;
}

static int fork_a_child(int rank, void *arg)
{
    int64_t data[2][ELEMENTS], one = 1;
    dt_bucket_t *bucket;
    dt_request_t request;
    pid_t pid;
    int status;

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_bucket_create(DT_WORLD, 2 * sizeof *data, DT_I64, DT_SUM, &bucket) == DT_OK);
    NEED(push_and_wait(bucket, BUFFERS, dt_size()));
    for (int k = 0; k < ELEMENTS; k++)
        data[0][k] = data[1][k] = rank + k;
    if (rank == 0)
        NEED(dt_iall_reduce(DT_WORLD, DT_IN_PLACE, &one, 1, DT_I64, DT_SUM, &request) == DT_OK);
    NEED(dt_bucket_push(bucket, data[0], ELEMENTS) == DT_OK);
    pid = rank == 0 ? fork() : 0;
    if (rank == 0 && pid == 0)
        _exit(try_all_calls(bucket, request));
    NEED(rank != 0 || (waitpid(pid, &status, 0) == pid && status == 0));
    if (rank != 0)
        NEED(dt_iall_reduce(DT_WORLD, DT_IN_PLACE, &one, 1, DT_I64, DT_SUM, &request) == DT_OK);
    NEED(dt_bucket_push(bucket, data[1], ELEMENTS) == DT_OK);
    NEED(dt_wait(&request) == DT_OK && one == dt_size());
    NEED(dt_bucket_free(bucket) == DT_OK);
    for (int k = 0; k < ELEMENTS; k++)
        NEED(data[0][k] == ranks_sum(k) && data[1][k] == ranks_sum(k));
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void a_child_of_a_rank_can_neither_push_nor_wait(void **state)
{
    (void)state;
    run_all(fork_a_child);
}

/* ---- orders ---- */

struct order {
    const char *hosts;
    size_t counts[2][3]; /* that rank 0 pushes, and that the last rank pushes */
    const char *error;   /* about the last rank's call, to the others */
};

/* All ranks push the same number of elements, in different counts. */
static int push_other_counts(int rank, void *arg)
{
    const struct order *o = arg;
    const size_t *counts;
    int64_t x[3][8] = { { 0 } }, other = rank;
    bool last;
    dt_bucket_t *b;

    NEED(dt_init() == DT_OK);
    last = rank == dt_size() - 1;
    counts = o->counts[last];
    NEED(dt_bucket_create(DT_WORLD, 0, DT_I64, DT_SUM, &b) == DT_OK);
    for (int i = 0; i < 3; i++)
        NEED(dt_bucket_push(b, x[i], counts[i]) == DT_OK);
    NEED(dt_bucket_wait(b) == DT_ERR_MISMATCH && strstr(dt_last_error(), "called all-reduce of 8"));
    NEED(last || strstr(dt_last_error(), o->error));
    NEED(dt_bucket_push(b, &other, 1) == DT_ERR_MISMATCH);
    NEED(dt_bucket_free(b) == DT_ERR_MISMATCH);
    NEED(dt_finalize() == DT_ERR_MISMATCH);
    return 0;
}

static void different_counts_are_an_error(void **state)
{
    static struct order orders[] = {
        { "2", { { 3, 5, 0 }, { 5, 3, 0 } }, "with other counts or in another order" },
        { "1 1", { { 1, 2, 5 }, { 1, 5, 2 } }, "with other counts or in another order" },
        { "2 1", { { 3, 5, 0 }, { 8, 0, 0 } }, "all-reduce of 8 i64 (sum), call 2" },
        { "2", { { 2, 0, 6 }, { 2, 5, 1 } }, "all-reduce of 8 i64 (sum) of a bucket, call 2" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        testjob_must_pass(orders[i].hosts, push_other_counts, &orders[i]);
}

/* Ranks without data learn the counts of the others' calls. */
static int push_for_longer(int rank, void *arg)
{
    int64_t x[3] = { 1, 2, 3 };
    dt_bucket_t *b;

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_bucket_create(DT_WORLD, 0, DT_I64, DT_SUM, &b) == DT_OK);
    NEED(dt_join_begin(DT_WORLD) == DT_OK);
    for (int step = 0; step <= rank; step++) {
        for (int i = 0; i < 3; i++) {
            x[i] = i;
            NEED(dt_bucket_push(b, &x[i], 1) == DT_OK);
        }
        NEED(dt_bucket_wait(b) == DT_OK);
        NEED(x[0] == 0 && x[1] == dt_size() - step && x[2] == 2 * x[1]);
    }
    NEED(dt_join(DT_WORLD, NULL) == DT_OK && dt_bucket_free(b) == DT_OK);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void ranks_without_data_learn_the_counts(void **state)
{
    (void)state;
    run_all(push_for_longer);
}

/* The error of a refused call names the rank and the call. */
static bool has_error(dt_result_t r, int rank, const char *comm, const char *message)
{
    dt_error_info_t info = { .size = sizeof info };

    return dt_last_error_info(&info) == DT_OK && info.code == r && info.rank == rank &&
           strcmp(info.operation, "all-reduce") == 0 && strcmp(info.comm, comm) == 0 &&
           strstr(info.message, message);
}

static int fail_calls(int rank, void *arg)
{
    float x[64] = { 0 };
    char want[64];
    dt_comm_t *comm;
    dt_bucket_t *b;

    (void)arg;
    NEED(dt_init() == DT_OK && dt_comm_dup(DT_WORLD, &comm) == DT_OK && forbid_threads());
    NEED(dt_bucket_create(comm, 64, DT_F32, DT_BAND, &b) == DT_ERR_ARG && !b);
    NEED(has_error(DT_ERR_ARG, rank, "0.1", "dt_bucket_create: "));
    NEED(dt_bucket_create(comm, 64, DT_F32, DT_SUM, NULL) == DT_ERR_ARG);
    NEED(has_error(DT_ERR_ARG, -1, "", "dt_bucket_create: "));
    NEED(dt_bucket_create(comm, 64, DT_F32, DT_SUM, &b) == DT_OK);
    NEED(dt_bucket_push(b, NULL, 1) == DT_ERR_ARG);
    NEED(has_error(DT_ERR_ARG, rank, "0.1", "dt_bucket_push: "));
    NEED(dt_bucket_wait(NULL) == DT_ERR_ARG && has_error(DT_ERR_ARG, -1, "", "dt_bucket_wait: "));
    snprintf(want, sizeof want, "rank %d (", rank);
    NEED(dt_bucket_push(b, x, 64) == DT_ERR_NOMEM && has_error(DT_ERR_NOMEM, rank, "0.1", want));
    NEED(strstr(dt_last_error(), "): dt_bucket_push: no thread for calls in the background "));
    NEED(dt_bucket_push(b, x, 1) == DT_ERR_NOMEM && dt_bucket_free(b) == DT_ERR_NOMEM);
    NEED(dt_bucket_create(comm, 64, DT_F32, DT_SUM, &b) == DT_OK);
    NEED(dt_bucket_push(b, x, 1) == DT_OK && dt_bucket_wait(b) == DT_ERR_NOMEM);
    NEED(has_error(DT_ERR_NOMEM, rank, "0.1", "): dt_bucket_wait: no thread "));
    NEED(allow_threads() && dt_bucket_wait(b) == DT_ERR_NOMEM && dt_bucket_free(b) == DT_ERR_NOMEM);
    NEED(dt_comm_free(comm) == DT_OK && dt_finalize() == DT_OK);
    return 0;
}

static void errors_name_rank_and_call(void **state)
{
    (void)state;
    testjob_must_pass("2", fail_calls, NULL);
}

/* Pushes after dt_comm_free and after dt_finalize, when no other rank would reduce the data. */
static int push_too_late(int rank, void *arg)
{
    int64_t x = 1;
    dt_comm_t *comm;
    dt_bucket_t *b, *of_world;

    (void)arg;
    NEED(dt_init() == DT_OK && dt_comm_dup(DT_WORLD, &comm) == DT_OK);
    NEED(dt_bucket_create(comm, 64, DT_I64, DT_SUM, &b) == DT_OK);
    NEED(dt_bucket_create(DT_WORLD, 64, DT_I64, DT_SUM, &of_world) == DT_OK);
    NEED(dt_comm_free(comm) == DT_OK);
    NEED(dt_bucket_push(b, &x, 1) == DT_ERR_STATE);
    NEED(has_error(DT_ERR_STATE, rank, "0.1", "dt_bucket_push: this communicator has been freed"));
    NEED(dt_bucket_push(of_world, &x, 1) == DT_OK && dt_bucket_wait(of_world) == DT_OK && x == 2);
    NEED(dt_finalize() == DT_OK);
    NEED(dt_bucket_push(of_world, &x, 1) == DT_ERR_STATE);
    NEED(has_error(DT_ERR_STATE, rank, "world", "dt_bucket_push was called after dt_finalize"));
    NEED(dt_bucket_free(b) == DT_ERR_STATE && dt_bucket_free(of_world) == DT_ERR_STATE);
    return 0;
}

static void a_push_after_the_end_is_refused(void **state)
{
    (void)state;
    testjob_must_pass("2", push_too_late, NULL);
}

/* Rank 1's first push fails, so its bucket stays empty. Rank 0 has pushed nothing then. A program
 * that looks only at dt_bucket_wait learns that the buffer was not reduced. */
static int push_nothing(int rank, void *arg)
{
    static const struct fault fault = { "realloc", ENOMEM, false };
    int64_t x = 1;
    dt_bucket_t *b;

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_bucket_create(DT_WORLD, 64, DT_I64, DT_SUM, &b) == DT_OK);
    if (rank == 1) {
        faults_arm(&fault, 1);
        NEED(dt_bucket_push(b, &x, 1) == DT_ERR_NOMEM);
        faults_disarm();
    }
    NEED(dt_bucket_wait(b) == (rank == 1 ? DT_ERR_NOMEM : DT_OK));
    NEED(dt_bucket_free(b) == (rank == 1 ? DT_ERR_NOMEM : DT_OK));
    NEED(dt_bucket_create(DT_WORLD, 64, DT_I64, DT_SUM, &b) == DT_OK);
    NEED(dt_bucket_push(b, &x, 1) == DT_OK && dt_bucket_wait(b) == DT_OK && x == 2);
    NEED(dt_bucket_free(b) == DT_OK && dt_finalize() == DT_OK);
    return 0;
}

static void an_empty_bucket_is_not_reduced(void **state)
{
    (void)state;
    testjob_must_pass("2", push_nothing, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_reduce_pushed_data),
        cmocka_unit_test(buckets_use_memory_that_all_ranks_of_a_host_share),
        cmocka_unit_test(many_ranks_do_not_share_large_buckets),
        cmocka_unit_test(a_child_of_a_rank_can_neither_push_nor_wait),
        cmocka_unit_test(different_counts_are_an_error),
        cmocka_unit_test(ranks_without_data_learn_the_counts),
        CHECKS("19", a_bucket_gives_the_bytes_of_single_calls),
        cmocka_unit_test(a_bucket_keeps_its_first_failure),
        cmocka_unit_test(errors_name_rank_and_call),
        cmocka_unit_test(a_push_after_the_end_is_refused),
        cmocka_unit_test(an_empty_bucket_is_not_reduced),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
