/* Ranks that run out of data after different numbers of steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/api/join.h"
#include "runtime/dtrun.h"
#include "runtime/kernels/dtype.h"
#include "runtime/kernels/reduce.h"
#include "tests/unit/checks.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/testjob.h"

enum { COUNT = 5000 };

static const char *const placements[] = { "1", "4", "2 1 2", NULL };

static void run_all(int (*body)(int rank, void *arg))
{
    assert_int_equal(testjob_pass_all(placements, body), 0);
}

/* ---- neutral elements ---- */

/* Tries every pattern of 16 bits, widened so that floats include zeros, infinities and all NaNs. */
static void a_neutral_element_changes_nothing(void **state)
{
    static uint64_t x[65536], neutral[65536], got[65536], want[65536];
    const void *one[] = { x }, *two[] = { x, neutral }, *swapped[] = { neutral, x };
    struct dt_fold f = { .dst = want, .src = one, .n = 1, .count = 65536, .divisor = 1 };

    (void)state;
    for (int dtype = 0; dtype < DT_DTYPE_MAX; dtype++) {
        size_t size = dt_dtype_size((dt_dtype_t)dtype);

        for (uint64_t i = 0; i < 65536; i++) {
            uint64_t bits = i << (8 * size > 16 ? 8 * size - 16 : 0);

            memcpy((char *)x + i * size, &bits, size);
        }
        for (int op = 0; op < DT_OP_MAX; op++) {
            if (!dt_op_applies((dt_op_t)op, (dt_dtype_t)dtype))
                continue;
            dt_join_fill(neutral, 65536, (dt_dtype_t)dtype, (dt_op_t)op);
            /* Reducing one source copies it. MAX of a value with itself makes all NaNs the same. */
            const void *twice[] = { x, x };
            f = (struct dt_fold){ .dst = want, .src = twice, .n = 2, .count = 65536, .divisor = 1 };
            dt_fold(&f, (dt_dtype_t)dtype, DT_MAX);
            f.dst = got;
            f.src = two;
            dt_fold(&f, (dt_dtype_t)dtype, (dt_op_t)op);
            assert_memory_equal(got, want, 65536 * size);
            f.src = swapped;
            dt_fold(&f, (dt_dtype_t)dtype, (dt_op_t)op);
            assert_memory_equal(got, want, 65536 * size);
        }
    }
}

/* ---- jobs ---- */

static int steps_of(int rank)
{
    return 3 + rank * 5 % 7;
}

/* The sum of rank + i over the ranks that have this step. */
static int64_t sum(int step, int64_t i)
{
    int64_t s = 0;

    for (int rank = 0; rank < dt_size(); rank++)
        s += steps_of(rank) > step ? rank + i : 0;
    return s;
}

static int take_steps(int rank)
{
    static int64_t x[COUNT];

    for (int step = 0; step < steps_of(rank); step++) {
        size_t count = step % 3 ? COUNT : 1;

        for (size_t i = 0; i < count; i++)
            x[i] = rank + (int64_t)i;
        NEED(dt_all_reduce(DT_WORLD, DT_IN_PLACE, x, count, DT_I64, DT_SUM) == DT_OK);
        for (size_t i = 0; i < count; i++)
            NEED(x[i] == sum(step, (int64_t)i));
        NEED(dt_barrier(DT_WORLD) == DT_OK);
    }
    return 0;
}

static int most_steps(void)
{
    int most = 0;

    for (int rank = 0; rank < dt_size(); rank++)
        most = steps_of(rank) > most ? steps_of(rank) : most;
    return most;
}

static int train(int rank, void *arg)
{
    float mean = (float)rank;
    int last = -1;

    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int epoch = 0; epoch < 3; epoch++) {
        NEED(dt_join_begin(DT_WORLD) == DT_OK);
        NEED(take_steps(rank) == 0);
        NEED(dt_join(DT_WORLD, &last) == DT_OK);
        NEED(last >= 0 && last < dt_size() && steps_of(last) == most_steps());
    }
    NEED(dt_all_reduce(DT_WORLD, DT_IN_PLACE, &mean, 1, DT_F32, DT_AVG) == DT_OK);
    NEED(mean == (float)(dt_size() - 1) / 2);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void ranks_without_data_leave_results_alone(void **state)
{
    (void)state;
    run_all(train);
}

/* An average divides by the number of all ranks. Buckets and requests are calls like others. */
static int other_ways(int rank, void *arg)
{
    float a = 1, b = 1;
    dt_request_t request;
    dt_bucket_t *bucket;

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_bucket_create(DT_WORLD, 64, DT_F32, DT_MIN, &bucket) == DT_OK);
    NEED(dt_join_begin(DT_WORLD) == DT_OK);
    if (rank == 0) {
        b = 5;
        NEED(dt_iall_reduce(DT_WORLD, DT_IN_PLACE, &a, 1, DT_F32, DT_AVG, &request) == DT_OK);
        NEED(dt_bucket_push(bucket, &b, 1) == DT_OK);
        NEED(dt_wait(&request) == DT_OK && dt_bucket_wait(bucket) == DT_OK);
        NEED(a == 1.0F / (float)dt_size() && b == 5);
    }
    NEED(dt_join(DT_WORLD, NULL) == DT_OK);
    NEED(dt_bucket_free(bucket) == DT_OK);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void ranks_without_data_join_calls_in_the_background(void **state)
{
    (void)state;
    run_all(other_ways);
}

/* Rank r has data for r + 1 steps. Ranks without data learn the options from the others. */
static int step_with_options(int n, int step)
{
    dt_all_reduce_options_t how = DT_ALL_REDUCE_OPTIONS_INIT;
    float sum[300], lost[300] = { 0 }, product = 3, least = 3, counted = 1, residual = 0;
    float powers = 1, with = (float)(n - step);

    for (int i = 0; i < 300; i++)
        sum[i] = 1;
    for (int i = step; i < n; i++)
        powers *= 6;
    how.prescale = -4;
    how.postscale = 0.5;
    how.wire = DT_WIRE_F16;
    how.residual = step % 2 ? lost : NULL;
    NEED(dt_all_reduce_with(DT_WORLD, DT_IN_PLACE, sum, 300, DT_F32, DT_SUM, &how) == DT_OK);
    for (int i = 0; i < 300; i++)
        NEED(sum[i] == -2 * with);
    how = (dt_all_reduce_options_t)DT_ALL_REDUCE_OPTIONS_INIT;
    how.prescale = 2;
    NEED(dt_all_reduce_with(DT_WORLD, DT_IN_PLACE, &product, 1, DT_F32, DT_PROD, &how) == DT_OK);
    NEED(dt_all_reduce_with(DT_WORLD, DT_IN_PLACE, &least, 1, DT_F32, DT_MIN, &how) == DT_OK);
    NEED(product == powers && least == 6);
    how.prescale = 1;
    how.wire = DT_WIRE_2BIT;
    how.threshold = 1;
    how.residual = &residual;
    NEED(dt_all_reduce_with(DT_WORLD, DT_IN_PLACE, &counted, 1, DT_F32, DT_SUM, &how) == DT_OK);
    NEED(counted >= 1 && counted <= with && (dt_local_size() < n || counted == with));
    return 0;
}

static int with_options(int rank, void *arg)
{
    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_join_begin(DT_WORLD) == DT_OK);
    for (int step = 0; step <= rank; step++)
        NEED(step_with_options(dt_size(), step) == 0);
    NEED(dt_join(DT_WORLD, NULL) == DT_OK);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void ranks_without_data_learn_options(void **state)
{
    (void)state;
    run_all(with_options);
}

static int misuse(int rank, void *arg)
{
    dt_request_t request;
    int64_t x = rank;

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_join(DT_WORLD, NULL) == DT_ERR_STATE);
    NEED(dt_join_begin(DT_WORLD) == DT_OK);
    NEED(dt_join_begin(DT_WORLD) == DT_ERR_STATE);
    NEED(dt_broadcast(DT_WORLD, &x, 1, DT_I64, 0) == DT_ERR_UNSUPPORTED);
    NEED(strstr(dt_last_error(), "between dt_join_begin and dt_join"));
    NEED(dt_checkpoint_save(1) == DT_ERR_UNSUPPORTED);
    NEED(dt_checkpoint_isave(1, &request) == DT_ERR_UNSUPPORTED && request.id == 0);
    NEED(dt_all_reduce(DT_WORLD, DT_IN_PLACE, &x, 1, DT_I64, DT_MAX) == DT_OK);
    NEED(x == dt_size() - 1);
    NEED(dt_join(DT_WORLD, NULL) == DT_OK);
    NEED(dt_broadcast(DT_WORLD, &x, 1, DT_I64, 0) == DT_OK);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void misuse_is_an_error_and_does_no_harm(void **state)
{
    (void)state;
    run_all(misuse);
}

/* Messages name ranks by their number in DT_WORLD, whatever their number in the communicator. */
static int misuse_turned_round(int rank, void *arg)
{
    char text[80];
    dt_comm_t *back;

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_comm_split(DT_WORLD, 0, -rank, &back) == DT_OK);
    snprintf(text, sizeof text, "rank %d: dt_join was called without dt_join_begin", rank);
    NEED(dt_join(back, NULL) == DT_ERR_STATE && strcmp(dt_last_error(), text) == 0);
    NEED(dt_join_begin(back) == DT_OK);
    snprintf(text, sizeof text, "rank %d: dt_join_begin was called twice", rank);
    NEED(dt_join_begin(back) == DT_ERR_STATE && strstr(dt_last_error(), text));
    snprintf(text, sizeof text, "rank %d: only dt_all_reduce and dt_barrier are allowed", rank);
    NEED(dt_broadcast(back, &rank, 1, DT_I32, 0) == DT_ERR_UNSUPPORTED);
    NEED(strstr(dt_last_error(), text));
    NEED(dt_join(back, NULL) == DT_OK);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void misuse_names_the_rank_of_the_world(void **state)
{
    (void)state;
    run_all(misuse_turned_round);
}

/* Ranks with data that make different calls get an error, and so do those without data. */
static int disagree(int rank, void *arg)
{
    int64_t x[4] = { 0 };
    dt_result_t r = DT_OK;

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_join_begin(DT_WORLD) == DT_OK);
    if (rank < 2)
        r = dt_all_reduce(DT_WORLD, DT_IN_PLACE, x, rank ? 4 : 3, DT_I64, DT_SUM);
    if (r == DT_OK)
        r = dt_join(DT_WORLD, NULL);
    NEED(r == (dt_size() == 1 ? DT_OK : DT_ERR_MISMATCH));
    NEED(dt_finalize() == r);
    return 0;
}

static void a_mismatch_is_an_error_on_all_ranks(void **state)
{
    (void)state;
    run_all(disagree);
}

/* A failed communicator returns its failure from every call, also where the call would be refused.
 */
static int join_after_failure(int rank, void *arg)
{
    int32_t x = 0;
    dt_comm_t *before, *after;

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_comm_dup(DT_WORLD, &before) == DT_OK && dt_comm_dup(DT_WORLD, &after) == DT_OK);
    NEED(dt_join_begin(after) == DT_OK && dt_barrier(DT_WORLD) == DT_OK);
    if (rank == 0)
        NEED(dt_comm_abort(before) == DT_OK && dt_comm_abort(after) == DT_OK);
    NEED(dt_barrier(before) == DT_ERR_ABORTED && dt_join_begin(before) == DT_ERR_ABORTED);
    NEED(dt_join(before, NULL) == DT_ERR_ABORTED);
    NEED(dt_barrier(after) == DT_ERR_ABORTED);
    NEED(dt_broadcast(after, &x, 1, DT_I32, 0) == DT_ERR_ABORTED);
    NEED(dt_join(after, NULL) == DT_ERR_ABORTED);
    NEED(dt_comm_free(before) == DT_ERR_ABORTED && dt_comm_free(after) == DT_ERR_ABORTED);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void a_failure_of_the_communicator_comes_first(void **state)
{
    (void)state;
    run_all(join_after_failure);
}

static bool says(const char *first, const char *second)
{
    const char *text = dt_last_error(), *found = strstr(text, first);
    bool good = found == text && strstr(text, second);

    if (!good)
        fprintf(stderr, "rank %d: neither '%s' nor '%s'\n", dt_rank(), first, second);
    return good;
}

/* Rank 0 has no more data, and rank 1 makes another call than the other ranks with data. */
static int disagree_without_it(int rank, void *arg)
{
    char call[40], first[16];
    dt_error_info_t info = { .size = sizeof info };
    int64_t x[4] = { 0 };
    dt_result_t r;

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_join_begin(DT_WORLD) == DT_OK);
    r = rank ? dt_all_reduce(DT_WORLD, x, x, rank == 1 ? 4 : 3, DT_I64, DT_SUM)
             : dt_join(DT_WORLD, NULL);
    NEED(r == DT_ERR_MISMATCH && dt_last_error_info(&info) == DT_OK);
    NEED(info.rank > 0);
    NEED(strcmp(info.operation, rank ? "all-reduce" : "dt_join") == 0);
    snprintf(call, sizeof call, rank ? "all-reduce of %d i64 (sum), call" : "dt_join, call",
             rank == 1 ? 4 : 3);
    snprintf(first, sizeof first, "rank %d (", rank);
    NEED(says(first, call));
    NEED(says(first, "called all-reduce of 3 i64 (sum), call"));
    NEED(says(first, "called all-reduce of 4 i64 (sum), call"));
    NEED(!rank || !strstr(dt_last_error(), "rank 0 ("));
    NEED(dt_finalize() == r);
    return 0;
}

static void ranks_without_data_are_not_blamed(void **state)
{
    static const char *const several[] = { "3", "1 1 1", "2 1", "1 2", "1 1 2", NULL };

    (void)state;
    assert_int_equal(testjob_pass_all(several, disagree_without_it), 0);
}

/* Ranks announce each call to each other. Errors do not mention this call, which the program did
 * not make. */
static int begin_otherwise(int rank, void *arg)
{
    dt_comm_t *comm[3];
    int64_t x = 0;

    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int i = 0; i < 3; i++)
        NEED(dt_comm_dup(DT_WORLD, &comm[i]) == DT_OK &&
             (i == 2 || dt_join_begin(comm[i]) == DT_OK));
    NEED((rank ? dt_barrier(comm[0]) : dt_comm_free(comm[0])) == DT_ERR_MISMATCH);
    NEED(rank ? says("rank 1 (", "called barrier, call 2 on communicator 0.1, after dt_join_begin")
              : says("rank 0 (", "called something after dt_join_begin, call 2"));
    NEED(rank == 0 || strstr(dt_last_error(), "called dt_comm_free, call 2"));
    NEED((rank ? dt_join(comm[1], NULL) : dt_comm_free(comm[1])) == DT_ERR_MISMATCH);
    NEED(rank == 0 || says("rank 1 (", "called dt_join, call 2 on communicator 0.2; "));
    NEED(rank || dt_join_begin(comm[2]) == DT_OK);
    NEED(dt_all_reduce(comm[2], &x, &x, 1, DT_I64, DT_SUM) == DT_ERR_MISMATCH);
    NEED(says(rank ? "rank 1 (" : "rank 0 (", "called all-reduce of 1 i64 (sum), call 2"));
    NEED(strstr(dt_last_error(), "after dt_join_begin"));
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void errors_describe_calls_as_the_program_made_them(void **state)
{
    static const char *const two[] = { "2", "1 1", NULL };

    (void)state;
    assert_int_equal(testjob_pass_all(two, begin_otherwise), 0);
}

/* Two calls that do not match, one of them larger than any memory, are announced to the third
 * rank. */
static int announce_too_much(int rank, void *arg)
{
    void *x = calloc(64, 1 << 20); /* read before the mismatch is noticed */
    dt_result_t r;

    (void)arg;
    NEED(x && dt_init() == DT_OK);
    NEED(dt_join_begin(DT_WORLD) == DT_OK);
    if (rank == 0)
        r = dt_all_reduce(DT_WORLD, DT_IN_PLACE, x, (size_t)1 << 61, DT_U8, DT_SUM);
    else if (rank == 1)
        r = dt_all_reduce(DT_WORLD, DT_IN_PLACE, x, 4, DT_F64, DT_SUM);
    else
        r = dt_join(DT_WORLD, NULL);
    NEED(r == DT_ERR_MISMATCH);
    NEED(dt_finalize() == r);
    free(x);
    return 0;
}

static void an_impossible_count_is_refused(void **state)
{
    (void)state;
    testjob_must_pass("3", announce_too_much, NULL);
    testjob_must_pass("1 1 1", announce_too_much, NULL);
}

/* AddressSanitizer's allocator must return NULL as others do, instead of ending the process. */
const char *__asan_default_options(void) __attribute__((visibility("default")));
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

/* The count exceeds every address space. Ranks with data have as much as is read before all
 * meet. */
static int join_without_memory(int rank, void *arg)
{
    const size_t count = (size_t)1 << 60;
    void *x = calloc(64, 1 << 20);
    dt_error_info_t info = { .size = sizeof info };
    char want[128];
    dt_result_t r;

    (void)arg;
    NEED(x && dt_init() == DT_OK);
    NEED(dt_join_begin(DT_WORLD) == DT_OK);
    r = rank == 2 ? dt_join(DT_WORLD, NULL)
                  : dt_all_reduce(DT_WORLD, DT_IN_PLACE, x, count, DT_U8, DT_SUM);
    NEED(r == DT_ERR_NOMEM);
    NEED(dt_last_error_info(&info) == DT_OK && info.rank == 2);
    NEED(strcmp(info.operation, "all-reduce") == 0);
    snprintf(want, sizeof want, "): dt_join: no memory to take part in the all-reduce of %zu u8 ",
             count);
    NEED(strstr(info.message, want) && strstr(info.message, "rank 2 ("));
    NEED(dt_finalize() == r);
    free(x);
    return 0;
}

static void all_ranks_learn_which_rank_lacks_memory(void **state)
{
    (void)state;
    testjob_must_pass("3", join_without_memory, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_neutral_element_changes_nothing),
        cmocka_unit_test(ranks_without_data_leave_results_alone),
        cmocka_unit_test(ranks_without_data_join_calls_in_the_background),
        cmocka_unit_test(ranks_without_data_learn_options),
        cmocka_unit_test(misuse_is_an_error_and_does_no_harm),
        cmocka_unit_test(misuse_names_the_rank_of_the_world),
        cmocka_unit_test(a_failure_of_the_communicator_comes_first),
        CHECKS("27", a_mismatch_is_an_error_on_all_ranks),
        CHECKS("27", ranks_without_data_are_not_blamed),
        CHECKS("27, 30", errors_describe_calls_as_the_program_made_them),
        cmocka_unit_test(an_impossible_count_is_refused),
        cmocka_unit_test(all_ranks_learn_which_rank_lacks_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
