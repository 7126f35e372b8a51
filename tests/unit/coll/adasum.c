/* Adasum: its arithmetic compared with combining vectors two by two, and DT_ADASUM between ranks of
 * one host and of several. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/coll/adasum.h"
#include "runtime/dtrun_tune.h"
#include "runtime/kernels/dtype.h"
#include "tests/unit/checks.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/reference.h"
#include "tests/unit/sanitized.h"
#include "tests/unit/testjob.h"
#include "tests/unit/weighed.h"

enum { VECTORS = 32, MOST = 70001 };

static const dt_dtype_t types[] = { DT_F16, DT_BF16, DT_F32, DT_F64 };

enum { TYPES = sizeof types / sizeof *types };

/* ---- inputs ---- */

/* The vectors share a part, and each has a part of its own. */
static double value(size_t vector, size_t i)
{
    int common = (int)(reference_mix(i + 1) % 17) - 8;
    int own = (int)(reference_mix(((uint64_t)(vector + 1) << 40) + i) % 33) - 16;

    return (common + own) / 8.0;
}

/* ---- arithmetic ---- */

static double weights[VECTORS];

/* Combines vectors that follow each other. */
static void weigh(const double *vectors, size_t n, size_t count)
{
    const struct dt_adasum a = { vectors, n, count, DT_F64 };
    struct dt_adasum_products products[VECTORS / 2];

    for (size_t i = 0; i < n; i++)
        weights[i] = 1;
    for (size_t width = 1; width < n; width *= 2) {
        dt_adasum_multiply(&a, weights, width, products);
        dt_adasum_weigh(products, n, width, weights);
    }
}

static void orthogonal_vectors_are_added(void **state)
{
    double v[VECTORS * VECTORS];

    (void)state;
    for (size_t n = 1; n <= VECTORS; n *= 2) {
        memset(v, 0, sizeof v);
        for (size_t i = 0; i < n; i++)
            v[i * n + i] = (double)i - 3.5;
        weigh(v, n, n);
        for (size_t i = 0; i < n; i++)
            assert_true(weights[i] == 1);
    }
}

static void equal_vectors_are_averaged(void **state)
{
    double v[VECTORS * 3] = { 0 };

    (void)state;
    for (size_t n = 1; n <= VECTORS; n *= 2) {
        for (size_t i = 0; i < 3 * n; i++)
            v[i] = 0.1 + (double)(i % 3);
        weigh(v, n, 3);
        for (size_t i = 0; i < n; i++)
            assert_true(weights[i] == 1.0 / (double)n);
    }
}

static void two_vectors_are_combined_by_the_formula(void **state)
{
    (void)state;
    weigh((const double[]){ 1, 0, 1, 1 }, 2, 2);
    assert_true(weights[0] == 0.5 && weights[1] == 0.75);
    weigh((const double[]){ 2, -1, -4, 2 }, 2, 2);
    assert_true(weights[0] == 2 && weights[1] == 1.25);
}

static void zeros_change_nothing(void **state)
{
    double pair[2];

    (void)state;
    weigh((const double[]){ 3, 4, 4, 1 }, 2, 2);
    memcpy(pair, weights, sizeof pair);
    weigh((const double[]){ 3, 4, 0, 0, 0, 0, 4, 1 }, 4, 2);
    assert_true(weights[0] == pair[0] && weights[3] == pair[1]);
    weigh((const double[8]){ 0 }, 4, 2);
    for (size_t i = 0; i < 4; i++)
        assert_true(weights[i] == 1);
    weigh((const double[]){ 3, -4, -3, 4, 1, 0, 1, 1 }, 4, 2); /* the first two cancel out */
    assert_true(weights[0] == 1.5 && weights[1] == 1.5);
    assert_true(weights[2] == 0.5 && weights[3] == 0.75);
}

static double random_of(size_t vector, size_t i)
{
    double r = (double)(reference_mix(((uint64_t)(vector + 1) << 40) + i) >> 11) * 0x1p-53 - 0.5;

    return r * exp2((double)(vector % 5) - 2) + value(99, i) / 8;
}

static void assert_combines(size_t n, size_t count)
{
    double *v = malloc(n * count * sizeof *v), *got = malloc(count * sizeof *got);
    long double *want[VECTORS] = { 0 }, most = 0;
    const struct dt_adasum a = { v, n, count, DT_F64 };

    for (size_t i = 0; i < n; i++) {
        want[i] = malloc(count * sizeof **want);
        for (size_t k = 0; k < count; k++)
            want[i][k] = v[i * count + k] = random_of(i, k);
    }
    weighed_combine(want, n, count);
    weigh(v, n, count);
    dt_adasum_combine(&a, weights, got);
    for (size_t k = 0; k < count; k++)
        most = fmaxl(most, fabsl(want[0][k]));
    for (size_t k = 0; k < count; k++)
        assert_true(fabsl(got[k] - want[0][k]) <= 1e-12L * most);
    for (size_t i = 0; i < n; i++)
        free(want[i]);
    free(got);
    free(v);
}

static void vectors_are_combined_in_pairs(void **state)
{
    static const size_t counts[] = { 2, 7, 255, 256, 257, 5000 };

    (void)state;
    for (size_t n = 1; n <= VECTORS; n *= 2) {
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
            assert_combines(n, counts[i]);
    }
}

/* Hardly anything is left of the first two, but it still has weight beside the others. */
static void vectors_that_nearly_cancel_keep_their_remainder(void **state)
{
    enum { COUNT = 300 };
    static double v[4 * COUNT], got[COUNT];
    static long double room[4][COUNT];
    long double *const want[] = { room[0], room[1], room[2], room[3] };
    const struct dt_adasum a = { v, 4, COUNT, DT_F64 };

    (void)state;
    for (size_t k = 0; k < COUNT; k++) {
        v[k] = value(0, k);
        v[COUNT + k] = 0x1p-30 * value(2, k) - value(0, k);
        v[2 * COUNT + k] = value(2, k);
        v[3 * COUNT + k] = value(3, k);
        for (size_t i = 0; i < 4; i++)
            room[i][k] = v[i * COUNT + k];
    }
    weighed_combine(want, 4, COUNT);
    weigh(v, 4, COUNT);
    dt_adasum_combine(&a, weights, got);
    for (size_t k = 0; k < COUNT; k++)
        assert_true(fabsl(got[k] - room[0][k]) <= 1e-5L);
}

static void a_nan_makes_the_whole_result_nan(void **state)
{
    static const double odd[] = { NAN, INFINITY, -INFINITY, 1e200 };
    static const uint64_t nan_bits = 0x7ff8000000000000;
    double v[] = { 1, 2, 3, 4, 0, 0, 5, -6 }, got[2];
    const struct dt_adasum a = { v, 4, 2, DT_F64 };

    (void)state;
    for (size_t i = 0; i < 8 * sizeof odd / sizeof *odd; i++) {
        double kept = v[i % 8];

        v[i % 8] = odd[i / 8];
        weigh(v, 4, 2);
        dt_adasum_combine(&a, weights, got);
        assert_memory_equal(&got[0], &nan_bits, 8);
        assert_memory_equal(&got[1], &nan_bits, 8);
        v[i % 8] = kept;
    }
}

/* ---- rounding ---- */

/* 1 plus slightly more or less than half of the last bit, which f32 would not keep. */
static void halves_are_rounded_once(void **state)
{
    static const struct {
        dt_dtype_t dtype;
        int bits;
    } halves[] = { { DT_F16, 10 }, { DT_BF16, 7 } };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        dt_dtype_t t = halves[i].dtype;
        double last = exp2(-halves[i].bits);

        for (int odd = 0; odd < 2; odd++) {
            for (int sign = -1; sign <= 1; sign += 2) {
                uint16_t v[2], got;
                const struct dt_adasum a = { v, 2, 1, t };
                double below = 1 + odd * last, half = last / 2;

                weighed_put(v, 0, t, sign);
                weighed_put(v, 1, t, sign);
                dt_adasum_combine(&a, (const double[]){ below, half * (1 + 0x1p-30) }, &got);
                assert_true(weighed_get(&got, 0, t) == sign * (below + last));
                dt_adasum_combine(&a, (const double[]){ below, half * (1 - 0x1p-30) }, &got);
                assert_true(weighed_get(&got, 0, t) == sign * below);
                dt_adasum_combine(&a, (const double[]){ below, half }, &got);
                assert_true(weighed_get(&got, 0, t) == sign * (below + odd * last));
            }
        }
    }
}

/* What is too large or too small for f32 is infinite or 0 in a half, too. */
static void halves_reach_from_zero_to_infinity(void **state)
{
    uint16_t v[] = { 0, 0, 0, 0 }, got[4];

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const struct dt_adasum a = { v, 1, 4, types[i] };

        for (size_t k = 0; k < 4; k++)
            weighed_put(v, k, types[i], k % 2 ? -1 : 1);
        dt_adasum_combine(&a, (const double[]){ 1e300 }, got);
        for (size_t k = 0; k < 4; k++)
            assert_true(weighed_get(got, k, types[i]) == (k % 2 ? -INFINITY : INFINITY));
        dt_adasum_combine(&a, (const double[]){ 1e-300 }, got);
        for (size_t k = 0; k < 4; k++)
            assert_int_equal(got[k], k % 2 ? 0x8000 : 0);
    }
}

/* All halves. */
static void a_weight_of_one_changes_nothing(void **state)
{
    static uint16_t all[65536], got[65536];

    (void)state;
    for (size_t i = 0; i < 65536; i++)
        all[i] = (uint16_t)i;
    for (size_t t = 0; t < 2; t++) {
        const struct dt_adasum a = { all, 1, 65536, types[t] };
        unsigned infinite = types[t] == DT_F16 ? 0x7c00 : 0x7f80;
        unsigned nan = types[t] == DT_F16 ? 0x7e00 : 0x7fc0;

        dt_adasum_combine(&a, (const double[]){ 1 }, got);
        for (unsigned i = 0; i < 65536; i++)
            assert_int_equal(got[i], (i & 0x7fff) > infinite ? nan : i);
    }
}

/* ---- ranks ---- */

enum { ROOM = MOST * 8 + 2 * REFERENCE_CANARY + 8 };

/* Puts data at an odd address, between canaries. */
static uint8_t *lay(uint8_t room[ROOM])
{
    memset(room, 0xa5, ROOM);
    return room + REFERENCE_CANARY + 1;
}

static bool is_kept(const uint8_t room[ROOM], size_t bytes)
{
    return reference_canaries(room + 1) && reference_canaries(room + REFERENCE_CANARY + 1 + bytes);
}

enum manner { IN_PLACE, APART, LATER, WITH_FACTORS, MANNERS };

/* The options multiply by 2 before the reduction and divide after it. */
static dt_result_t reduce(dt_comm_t *comm, enum manner how, const void *in, void *out, size_t count,
                          dt_dtype_t t)
{
    dt_all_reduce_options_t options = DT_ALL_REDUCE_OPTIONS_INIT;
    dt_request_t request;
    dt_result_t r;

    switch (how) {
    case IN_PLACE:
        return dt_all_reduce(comm, DT_IN_PLACE, out, count, t, DT_ADASUM);
    case APART:
        return dt_all_reduce(comm, in, out, count, t, DT_ADASUM);
    case LATER:
        r = dt_iall_reduce(comm, in, out, count, t, DT_ADASUM, &request);
        return r == DT_OK ? dt_wait(&request) : r;
    default:
        options.prescale = 2;
        options.postscale = 0.5;
        return dt_all_reduce_with(comm, in, out, count, t, DT_ADASUM, &options);
    }
}

typedef double (*value_f)(size_t vector, size_t i);

static uint8_t in_room[ROOM], out_room[ROOM], before[ROOM];

/* Leaves the result in out_room, where lay() would put it. */
static int weigh_among(dt_comm_t *comm, enum manner how, size_t count, dt_dtype_t t, value_f v)
{
    uint8_t *in = lay(in_room), *out = lay(out_room);
    size_t bytes = count * dt_dtype_size(t);

    for (size_t i = 0; i < count; i++)
        weighed_put(how == IN_PLACE ? out : in, i, t, v((size_t)dt_comm_rank(comm), i));
    memcpy(before, in_room, ROOM);
    NEED(reduce(comm, how, in, out, count, t) == DT_OK);
    NEED(memcmp(before, in_room, ROOM) == 0 && is_kept(out_room, bytes));
    return 0;
}

static const void *result(void)
{
    return out_room + REFERENCE_CANARY + 1;
}

/* Whether all ranks have the same bytes. */
static int are_alike(dt_comm_t *comm, size_t bytes)
{
    uint64_t sum = 0, least, most;

    for (size_t i = 0; i < bytes; i++)
        sum = reference_mix(sum ^ ((const uint8_t *)result())[i]);
    least = most = sum;
    NEED(dt_all_reduce(comm, DT_IN_PLACE, &least, 1, DT_U64, DT_MIN) == DT_OK);
    NEED(dt_all_reduce(comm, DT_IN_PLACE, &most, 1, DT_U64, DT_MAX) == DT_OK);
    NEED(least == most);
    return 0;
}

/* Rank 0 computes it for all, before they make a call together. Two take turns, because others may
 * still compare. */
enum { EXPECTED = 2 };

static long double *expected[EXPECTED], (*vectors)[MOST];

static int share_expected(void **state)
{
    (void)state;
    vectors = testjob_shared(8 * sizeof *vectors);
    for (int i = 0; i < EXPECTED; i++)
        expected[i] = testjob_shared(MOST * sizeof **expected);
    return 0;
}

static const long double *reference_of(size_t n, size_t count)
{
    static unsigned turn;
    long double *want = expected[turn % EXPECTED], *v[8] = { want };

    for (size_t i = 0; i < n && dt_rank() == 0; i++) {
        v[i] = i ? vectors[i] : want;
        for (size_t k = 0; k < count; k++)
            v[i][k] = value(i, k);
    }
    if (dt_rank() == 0)
        weighed_combine(v, n, count);
    turn += count > 0; /* calls without data do not wait for other ranks */
    return want;
}

/* Half of the last bit, and what f64 loses on the way. */
static long double error_of(dt_dtype_t t, long double v)
{
    long double part = t == DT_F16    ? 0x1p-11L
                       : t == DT_BF16 ? 0x1p-8L
                       : t == DT_F32  ? 0x1p-24L
                                      : 0x1p-53L;

    return fabsl(v) * part + 1e-12L + (t == DT_F16 ? 0x1p-25L : 0);
}

static int is_as_defined(dt_comm_t *comm, enum manner how, size_t count, dt_dtype_t t,
                         const long double *want)
{
    NEED(weigh_among(comm, how, count, t, value) == 0);
    for (size_t i = 0; i < count; i++)
        NEED(fabsl(weighed_get(result(), i, t) - want[i]) <= error_of(t, want[i]));
    return are_alike(comm, count * dt_dtype_size(t));
}

static int all_sizes(int rank, void *arg)
{
    static const size_t counts[] = { 0, 1, 2, 3, 5, 8, 13, 100, 256, 1027, 5003, MOST };
    dt_comm_t *turned;

    (void)rank;
    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_comm_split(DT_WORLD, 0, -dt_rank(), &turned) == DT_OK);
    NEED(dt_comm_tune(turned, "net_exchange = 1\nnet_leader = 1") == DT_OK);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        const long double *want = reference_of((size_t)dt_size(), counts[c]);

        for (size_t k = 0; k < TYPES * MANNERS; k++) {
            /* Of the longer vectors, one manner for each type. */
            if (counts[c] > (SANITIZED ? 10 : 2000) && k % TYPES != (k / TYPES + c) % TYPES)
                continue;
            NEED(is_as_defined(k % 2 ? turned : DT_WORLD, (enum manner)(k / TYPES), counts[c],
                               types[k % TYPES], want) == 0);
        }
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static const char *const placements[] = { "1",   "2",     "4",       "8",   "1 1",   "2 2",
                                          "3 1", "@0110", "1 1 1 1", "5 3", "3 1 4", NULL };

static void ranks_get_the_defined_result(void **state)
{
    (void)state;
    assert_int_equal(testjob_pass_all(placements, all_sizes), 0);
}

/* No two ranks have a value in the same place. */
static double alone(size_t vector, size_t i)
{
    return i % (size_t)dt_size() == vector ? (double)(i % 200) - 99.5 : 0;
}

static double equal(size_t vector, size_t i)
{
    (void)vector;
    return (double)(i % 200) - 99.5;
}

static int sums_and_averages(int rank, void *arg)
{
    enum { COUNT = 3001 };

    (void)rank;
    (void)arg;
    NEED(dt_init() == DT_OK);
    for (size_t k = 0; k < 2 * TYPES; k++) {
        dt_dtype_t t = types[k % TYPES];

        NEED(weigh_among(DT_WORLD, IN_PLACE, COUNT, t, k < TYPES ? alone : equal) == 0);
        for (size_t i = 0; i < COUNT; i++)
            NEED(weighed_get(result(), i, t) == equal(0, i));
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void orthogonal_vectors_become_their_sum_equal_ones_their_average(void **state)
{
    (void)state;
    assert_int_equal(testjob_pass_all(placements, sums_and_averages), 0);
}

/* Data is taken from memory that all ranks of the host have mapped. */
static int mapped(int rank, void *arg)
{
    const long double *want;
    void *in, *out;

    (void)arg;
    NEED(dt_init() == DT_OK);
    want = reference_of((size_t)dt_size(), MOST);
    NEED(dt_mem_alloc(DT_WORLD, MOST * sizeof(float), &in) == DT_OK);
    NEED(dt_mem_alloc(DT_WORLD, MOST * sizeof(float), &out) == DT_OK);
    for (int place = 0; place < 2; place++) {
        for (size_t i = 0; i < MOST; i++)
            weighed_put(in, i, DT_F32, value((size_t)rank, i));
        NEED(reduce(DT_WORLD, place ? IN_PLACE : APART, in, place ? in : out, MOST, DT_F32) ==
             DT_OK);
        for (size_t i = 0; i < MOST; i++)
            NEED(fabsl(weighed_get(place ? in : out, i, DT_F32) - want[i]) <=
                 error_of(DT_F32, want[i]));
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void data_is_taken_from_shared_memory(void **state)
{
    static const char *const two[] = { "4", "2 2", NULL };

    (void)state;
    assert_int_equal(testjob_pass_all(two, mapped), 0);
}

/* A rank without data adds zeros. */
static int uneven(int rank, void *arg)
{
    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_join_begin(DT_WORLD) == DT_OK);
    if (rank == 1) {
        for (size_t i = 0; i < TYPES; i++) {
            NEED(weigh_among(DT_WORLD, APART, 300, types[i], value) == 0);
            for (size_t k = 0; k < 300; k++)
                NEED(weighed_get(result(), k, types[i]) == value(1, k));
        }
    }
    NEED(dt_join(DT_WORLD, NULL) == DT_OK);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void ranks_without_data_change_nothing(void **state)
{
    (void)state;
    assert_int_equal(testjob_pass_all(placements + 1, uneven), 0);
}

/* ---- misuse ---- */

static int is_refused(dt_result_t r, const char *why)
{
    NEED(r == DT_ERR_ARG);
    NEED(strstr(dt_last_error(), why));
    return 0;
}

/* The communicator goes on, and a part of it has a valid size. */
static int odd_size(int rank, void *arg)
{
    static const char why[] = "must be a power of two, not 3; dt_comm_split can make a "
                              "communicator of 2";
    float v = 1, sum = 0;
    dt_request_t request;
    dt_comm_t *part;

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(is_refused(dt_all_reduce(DT_WORLD, &v, &sum, 1, DT_F32, DT_ADASUM), why) == 0);
    NEED(is_refused(dt_all_reduce(DT_WORLD, &v, &sum, 0, DT_F32, DT_ADASUM), why) == 0);
    NEED(is_refused(dt_all_reduce_with(DT_WORLD, &v, &sum, 1, DT_F32, DT_ADASUM, NULL), why) == 0);
    NEED(is_refused(dt_iall_reduce(DT_WORLD, &v, &sum, 1, DT_F32, DT_ADASUM, &request), why) == 0);
    NEED(request.id == 0 && sum == 0);
    NEED(dt_all_reduce(DT_WORLD, &v, &sum, 1, DT_F32, DT_SUM) == DT_OK && sum == 3);
    NEED(dt_comm_split(DT_WORLD, rank > 0, 0, &part) == DT_OK);
    NEED(dt_all_reduce(part, &v, &sum, 1, DT_F32, DT_ADASUM) == DT_OK && sum == 1);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void other_numbers_of_ranks_are_refused(void **state)
{
    static const char *const three[] = { "3", "1 1 1", "2 1", NULL };

    (void)state;
    assert_int_equal(testjob_pass_all(three, odd_size), 0);
}

static int other_calls(int rank, void *arg)
{
    static const char alone_is[] = ": adasum weighs whole vectors against each other: it is for "
                                   "dt_all_reduce and dt_iall_reduce";
    dt_all_reduce_options_t how = DT_ALL_REDUCE_OPTIONS_INIT;
    float v[] = { 1, 2 }, w[2] = { 0 };
    dt_bucket_t *bucket;

    (void)arg;
    NEED(dt_init() == DT_OK);
    for (dt_dtype_t t = DT_I8; t <= DT_U64; t++)
        NEED(is_refused(dt_all_reduce(DT_WORLD, v, w, 1, t, DT_ADASUM), "not for ") == 0);
    NEED(is_refused(dt_reduce(DT_WORLD, v, w, 1, DT_F32, DT_ADASUM, 0), alone_is) == 0);
    NEED(is_refused(dt_reduce_scatter(DT_WORLD, v, w, 1, DT_F32, DT_ADASUM), alone_is) == 0);
    NEED(is_refused(dt_bucket_create(DT_WORLD, 0, DT_F32, DT_ADASUM, &bucket), alone_is) == 0);
    how.wire = DT_WIRE_BF16;
    NEED(is_refused(dt_all_reduce_with(DT_WORLD, v, w, 2, DT_F32, DT_ADASUM, &how),
                    "bf16 is for sums and averages of f32, not for the adasum of f32") == 0);
    NEED(w[0] == 0 && w[1] == 0);
    v[0] = (float)rank;
    NEED(dt_all_reduce(DT_WORLD, v, w, 2, DT_F32, DT_SUM) == DT_OK && w[0] == 1 && w[1] == 4);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void other_calls_and_types_are_refused(void **state)
{
    static const char *const two[] = { "2", "1 1", NULL };

    (void)state;
    assert_int_equal(testjob_pass_all(two, other_calls), 0);
}

struct meaning {
    size_t count;
    dt_op_t op;
};

static bool is_told(struct meaning m)
{
    char text[64];

    snprintf(text, sizeof text, "all-reduce of %zu f32 (%s)", m.count, dt_op_name(m.op));
    return strstr(dt_last_error(), text);
}

/* One rank makes another call than the others. */
static int mismatch(int rank, struct meaning odd, struct meaning others)
{
    struct meaning mine = rank == 1 ? odd : others;
    dt_comm_t *comm;

    NEED(dt_comm_dup(DT_WORLD, &comm) == DT_OK);
    NEED(dt_barrier(DT_WORLD) == DT_OK);
    NEED(dt_all_reduce(comm, in_room, out_room, mine.count, DT_F32, mine.op) == DT_ERR_MISMATCH);
    NEED(is_told(odd) && is_told(others));
    NEED(dt_comm_free(comm) == DT_ERR_MISMATCH);
    NEED(dt_barrier(DT_WORLD) == DT_OK);
    return 0;
}

static int mismatches(int rank, void *arg)
{
    static const size_t counts[] = { 0, 1, 100, 5000, MOST };
    enum { COUNTS = sizeof counts / sizeof *counts };

    (void)arg;
    NEED(dt_init() == DT_OK);
    for (size_t i = 0; i < COUNTS; i++) {
        struct meaning sum = { counts[i], DT_SUM }, weighed = { counts[i], DT_ADASUM };
        struct meaning other = { counts[(i + 1) % COUNTS], DT_ADASUM };

        NEED(mismatch(rank, sum, weighed) == 0);
        NEED(mismatch(rank, weighed, sum) == 0);
        NEED(mismatch(rank, weighed, other) == 0);
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void calls_that_do_not_match_are_an_error(void **state)
{
    (void)state;
    assert_int_equal(testjob_pass_all(placements + 1, mismatches), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orthogonal_vectors_are_added),
        cmocka_unit_test(equal_vectors_are_averaged),
        cmocka_unit_test(two_vectors_are_combined_by_the_formula),
        cmocka_unit_test(zeros_change_nothing),
        cmocka_unit_test(vectors_are_combined_in_pairs),
        cmocka_unit_test(vectors_that_nearly_cancel_keep_their_remainder),
        cmocka_unit_test(a_nan_makes_the_whole_result_nan),
        cmocka_unit_test(halves_are_rounded_once),
        cmocka_unit_test(halves_reach_from_zero_to_infinity),
        cmocka_unit_test(a_weight_of_one_changes_nothing),
        CHECKS("3, 6, 7, 10, 16, 19, 23", ranks_get_the_defined_result),
        CHECKS("23", orthogonal_vectors_become_their_sum_equal_ones_their_average),
        CHECKS("23", data_is_taken_from_shared_memory),
        CHECKS("23", ranks_without_data_change_nothing),
        CHECKS("23", other_numbers_of_ranks_are_refused),
        CHECKS("23", other_calls_and_types_are_refused),
        CHECKS("23, 29", calls_that_do_not_match_are_an_error),
    };

    return cmocka_run_group_tests(tests, share_expected, NULL);
}
