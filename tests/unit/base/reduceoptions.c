/* All-reduce with options: which options are accepted, and what they do on one host and on
 * several. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/reduceoptions.h"
#include "runtime/kernels/reduce.h"
#include "runtime/kernels/wireformat.h"
#include "tests/unit/checks.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/testjob.h"

static const dt_all_reduce_options_t none = DT_ALL_REDUCE_OPTIONS_INIT;

/* ---- reading ---- */

static float some[4];

static void taken(const dt_all_reduce_options_t *given, dt_dtype_t dtype, dt_op_t op, bool device)
{
    dt_all_reduce_options_t o;

    assert_int_equal(dt_reduceoptions_read("dt_x", given, 4, dtype, op, device, &o), DT_OK);
    assert_true(o.wire >= DT_WIRE_EXACT);
}

static void refused(const dt_all_reduce_options_t *given, dt_dtype_t dtype, dt_op_t op, bool device,
                    dt_result_t result, const char *text)
{
    dt_all_reduce_options_t o;

    assert_int_equal(dt_reduceoptions_read("dt_x", given, 4, dtype, op, device, &o), result);
    assert_non_null(strstr(dt_last_error(), text));
}

static void options_that_fit_the_call_are_accepted(void **state)
{
    static const struct {
        dt_all_reduce_options_t given;
        dt_dtype_t dtype;
        dt_op_t op;
        bool device;
    } cases[] = {
        { { sizeof none, 1, 1, NULL, DT_WIRE_EXACT, 0 }, DT_I8, DT_BOR, true },
        { { sizeof none, 1, 1, NULL, DT_WIRE_DEFAULT, 0 }, DT_F64, DT_PROD, true },
        { { sizeof none, 1, 1, NULL, DT_WIRE_F16, 0 }, DT_F32, DT_AVG, false },
        { { sizeof none, 1, 1, NULL, DT_WIRE_F16, 0 }, DT_F32, DT_AVG, true },
        { { sizeof none, 2, 0.5, NULL, DT_WIRE_EXACT, 0 }, DT_F16, DT_AVG, true },
        { { sizeof none, 1, 1, some, DT_WIRE_2BIT, 1 }, DT_F32, DT_SUM, true },
        { { sizeof none, 0, -1, NULL, DT_WIRE_EXACT, 0 }, DT_BF16, DT_MAX, false },
        { { sizeof none, NAN, 1, NULL, DT_WIRE_INT8, 0 }, DT_F32, DT_SUM, false },
        { { sizeof none, 1, 1, some, DT_WIRE_2BIT, 1 }, DT_F32, DT_SUM, false },
        { { sizeof none, 1, 1, some, DT_WIRE_EXACT, 1 }, DT_F32, DT_SUM, false },
    };

    (void)state;
    assert_int_equal(dt_reduceoptions_choose_wire(DT_WIRE_EXACT, "here"), DT_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        taken(&cases[i].given, cases[i].dtype, cases[i].op, cases[i].device);
}

static void options_of_an_unknown_version_are_refused(void **state)
{
    static const size_t sizes[] = { 0, sizeof none - 1, SIZE_MAX };
    dt_all_reduce_options_t given = none;

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        given.size = sizes[i];
        refused(&given, DT_F32, DT_SUM, false, DT_ERR_VERSION, "which no version");
    }
    given.size = 0;
    refused(&given, DT_F32, DT_SUM, false, DT_ERR_VERSION, "options->size is 0, which no version");
}

static void options_without_meaning_are_refused(void **state)
{
    static const struct {
        dt_all_reduce_options_t given;
        const char *text;
    } cases[] = {
        { { sizeof none, 1, 1, NULL, (dt_wire_t)5, 0 }, "5 is not a dt_wire_t" },
        { { sizeof none, 1, 1, NULL, (dt_wire_t)-2, 0 }, "-2 is not a dt_wire_t" },
        { { sizeof none, 1, 1, NULL, DT_WIRE_2BIT, 1 }, "2bit needs a residual" },
        { { sizeof none, 1, 1, some, DT_WIRE_2BIT, 0 }, "the threshold is 0, and must be above 0" },
        { { sizeof none, 1, 1, some, DT_WIRE_2BIT, NAN }, "the threshold is nan" },
        { { sizeof none, 1, 1, some, DT_WIRE_2BIT, INFINITY }, "the threshold is inf" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(&cases[i].given, DT_F32, DT_SUM, false, DT_ERR_ARG, cases[i].text);
}

static void options_for_other_types_and_operations_are_refused(void **state)
{
    static const struct {
        dt_all_reduce_options_t given;
        dt_dtype_t dtype;
        dt_op_t op;
        const char *text;
    } cases[] = {
        { { sizeof none, 2, 1, NULL, DT_WIRE_EXACT, 0 },
          DT_I32,
          DT_SUM,
          "factors are for floats, not for i32" },
        { { sizeof none, 1, NAN, NULL, DT_WIRE_EXACT, 0 },
          DT_U8,
          DT_SUM,
          "factors are for floats, not for u8" },
        { { sizeof none, 1, 1, NULL, DT_WIRE_F16, 0 },
          DT_F64,
          DT_SUM,
          "f16 is for sums and averages of f32, not for the sum of f64" },
        { { sizeof none, 1, 1, NULL, DT_WIRE_INT8, 0 },
          DT_BF16,
          DT_AVG,
          "int8 is for sums and averages of f32, not for the avg of bf16" },
        { { sizeof none, 1, 1, NULL, DT_WIRE_BF16, 0 },
          DT_F32,
          DT_MAX,
          "bf16 is for sums and averages of f32, not for the max of f32" },
        { { sizeof none, 1, 1, some, DT_WIRE_EXACT, 0 },
          DT_F16,
          DT_SUM,
          "a residual is for sums and averages of f32" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(&cases[i].given, cases[i].dtype, cases[i].op, false, DT_ERR_ARG, cases[i].text);
}

static void a_residual_of_device_memory_needs_a_wire_format(void **state)
{
    static const dt_all_reduce_options_t exact = { sizeof none, 1, 1, some, DT_WIRE_EXACT, 0 };

    (void)state;
    refused(&exact, DT_F32, DT_SUM, true, DT_ERR_UNSUPPORTED,
            "a residual without a wire format works in host memory only");
}

/* Programs built with a later version have more options, which matter only if they are set. */
static void options_of_a_later_version_are_known_by_their_size(void **state)
{
    struct {
        dt_all_reduce_options_t known;
        uint8_t unknown[40];
    } later = { .known = none };
    dt_all_reduce_options_t o;

    (void)state;
    later.known.size = sizeof later;
    later.known.wire = DT_WIRE_INT8;
    assert_int_equal(dt_reduceoptions_read("dt_x", &later.known, 1, DT_F32, DT_SUM, false, &o),
                     DT_OK);
    assert_int_equal(o.wire, DT_WIRE_INT8);
    for (size_t i = 0; i < sizeof later.unknown; i++) {
        later.unknown[i] = 1;
        assert_int_equal(dt_reduceoptions_read("dt_x", &later.known, 1, DT_F32, DT_SUM, false, &o),
                         DT_ERR_VERSION);
        assert_non_null(strstr(dt_last_error(), "is older than the program's dtrun.h"));
        later.unknown[i] = 0;
    }
}

static void the_environment_chooses_for_large_sums_of_f32(void **state)
{
    static const struct {
        const char *text;
        dt_result_t result;
        int wire; /* for 4096 sums of f32 */
        const char *why;
    } cases[] = {
        { "exact", DT_OK, DT_WIRE_EXACT, "" },
        { "f16", DT_OK, DT_WIRE_F16, "" },
        { "bf16", DT_OK, DT_WIRE_BF16, "" },
        { "int8", DT_OK, DT_WIRE_INT8, "" },
        { "2bit", DT_ERR_ARG, DT_WIRE_EXACT, "with dt_all_reduce_with" },
        { "fp16", DT_ERR_ARG, DT_WIRE_EXACT,
          "DTRUN_WIRE=fp16 is not one of exact, f16, bf16, int8" },
    };
    dt_all_reduce_options_t given = none, o;

    (void)state;
    given.wire = DT_WIRE_DEFAULT;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const dt_all_reduce_options_t *d;

        assert_int_equal(dt_reduceoptions_choose(cases[i].text), cases[i].result);
        if (cases[i].result != DT_OK)
            assert_non_null(strstr(dt_last_error(), cases[i].why));
        d = dt_reduceoptions_default(4096, DT_F32, DT_AVG);
        assert_int_equal(d ? d->wire : DT_WIRE_EXACT, cases[i].wire);
        assert_null(dt_reduceoptions_default(4095, DT_F32, DT_SUM));
        assert_null(dt_reduceoptions_default(4096, DT_F64, DT_SUM));
        assert_null(dt_reduceoptions_default(4096, DT_F32, DT_MIN));
        assert_int_equal(dt_reduceoptions_read("dt_x", &given, 4096, DT_F32, DT_SUM, false, &o),
                         DT_OK);
        assert_int_equal(o.wire, cases[i].wire);
        assert_int_equal(dt_reduceoptions_read("dt_x", &given, 4096, DT_F32, DT_SUM, true, &o),
                         DT_OK);
        assert_int_equal(o.wire, DT_WIRE_EXACT);
    }
    assert_int_equal(dt_reduceoptions_choose_wire(DT_WIRE_EXACT, "here"), DT_OK);
}

static void equal_options_have_the_same_mark(void **state)
{
    static const dt_all_reduce_options_t all[] = {
        { sizeof none, 1, 1, NULL, DT_WIRE_EXACT, 0.5F },
        { sizeof none, 2, 1, NULL, DT_WIRE_EXACT, 0.5F },
        { sizeof none, 1, 2, NULL, DT_WIRE_EXACT, 0.5F },
        { sizeof none, NAN, 1, NULL, DT_WIRE_EXACT, 0.5F },
        { sizeof none, 0, 1, NULL, DT_WIRE_EXACT, 0.5F },
        { sizeof none, -0.0, 1, NULL, DT_WIRE_EXACT, 0.5F },
        { sizeof none, 1, 1, NULL, DT_WIRE_F16, 0.5F },
        { sizeof none, 2, 1, NULL, DT_WIRE_F16, 0.5F },
        { sizeof none, 1, 1, some, DT_WIRE_2BIT, 0.5F },
        { sizeof none, 1, 1, some, DT_WIRE_2BIT, 0.25F },
    };
    dt_all_reduce_options_t o = all[3];

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        for (size_t k = 0; k < sizeof all / sizeof *all; k++)
            assert_true((dt_reduceoptions_mark(&all[i]) == dt_reduceoptions_mark(&all[k])) ==
                        (i == k));
    }
    assert_true(dt_reduceoptions_mark(&all[0]) == 0);
    o.prescale = -NAN;
    o.threshold = 7;
    o.residual = some;
    assert_true(dt_reduceoptions_mark(&o) == dt_reduceoptions_mark(&all[3]));
    assert_string_equal(dt_reduceoptions_describe(dt_reduceoptions_mark(&all[8])),
                        " as 2bit with a threshold");
}

/* ---- reducing ---- */

static const char *placement;

/* What rank 0 computes for all of them. Two take turns, because others may still compare. */
enum { EXPECTED = 2, MOST = 300003 };

static float *expected[EXPECTED];

static uint64_t mix(uint64_t x)
{
    x ^= x >> 31;
    x *= 0x9e3779b97f4a7c15U;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9U;
    return x ^ x >> 32;
}

/* Multiples of 2^-12 in [-0.5, 0.5]. Sums of a few are exact. */
static float value(int rank, size_t i, int step)
{
    uint64_t r = mix(((uint64_t)rank << 50) + ((uint64_t)step << 40) + i + 1);

    return (float)((int)(r % 4097) - 2048) * 0x1p-12F;
}

static void fold(float *dst, const void *const *src, size_t n, size_t count, int divisor)
{
    struct dt_fold f = { .dst = dst, .src = src, .n = n, .count = count, .divisor = divisor };

    dt_fold(&f, DT_F32, DT_AVG);
}

static void round_trip(enum dt_wireformat f, float *v, size_t count, float in, float out)
{
    uint8_t *packed = malloc(4 * count + 1024);

    dt_wireformat_pack(f, packed, v, count, in);
    dt_wireformat_unpack(f, v, packed, count, out);
    free(packed);
}

/* Computes the expected result: every host's sum is rounded, then the sum of all hosts. */
static void reference(float *want, size_t count, int step, int divisor,
                      const dt_all_reduce_options_t *o)
{
    static const enum dt_wireformat formats[] = { [DT_WIRE_F16] = DT_FORMAT_F16,
                                                  [DT_WIRE_BF16] = DT_FORMAT_BF16,
                                                  [DT_WIRE_INT8] = DT_FORMAT_INT8,
                                                  [DT_WIRE_2BIT] = DT_FORMAT_COUNT2 };
    bool counting = o->wire == DT_WIRE_2BIT;
    int home[TESTJOB_RANKS], n = testjob_place(placement, home), done = 0;
    float *all = calloc(2 * TESTJOB_RANKS * count + 1, sizeof *all);
    const void *sums[TESTJOB_RANKS] = { NULL }, *src[TESTJOB_RANKS];
    size_t hosts = 0;

    for (; done < n; hosts++) {
        float *sum = all + (TESTJOB_RANKS + hosts) * count;
        size_t here = 0;

        for (int rank = 0; rank < n; rank++) {
            if (home[rank] != (int)hosts)
                continue;
            for (size_t i = 0; i < count; i++)
                all[(size_t)rank * count + i] = value(rank, i, step);
            src[here++] = all + (size_t)rank * count;
        }
        fold(sum, src, here, count, 1);
        sums[hosts] = sum;
        done += (int)here;
    }
    for (size_t h = 0; h < hosts && hosts > 1 && o->wire != DT_WIRE_EXACT; h++)
        round_trip(formats[o->wire], all + (TESTJOB_RANKS + h) * count, count, o->threshold, 1);
    fold(want, sums, hosts, count, counting && hosts > 1 ? 1 : divisor);
    if (hosts > 1 && counting)
        round_trip(DT_FORMAT_COUNT8, want, count, 1, o->threshold / (float)divisor);
    else if (hosts > 1 && o->wire != DT_WIRE_EXACT)
        round_trip(formats[o->wire], want, count, 1, 1);
    free(all);
}

/* It is there when a call returns in which all ranks have a part. */
static const float *expect(size_t count, int divisor, const dt_all_reduce_options_t *o)
{
    static unsigned turn;
    float *want = expected[turn % EXPECTED];

    if (dt_rank() == 0)
        reference(want, count, 0, divisor, o);
    turn += count > 0; /* calls without data do not wait for other ranks */
    return want;
}

/* Buffers are at odd addresses. What follows them must stay unchanged. */
static int try_one(size_t count, dt_op_t op, const dt_all_reduce_options_t *options, bool in_place)
{
    size_t bytes = count * sizeof(float);
    uint8_t *in = calloc(bytes + 9, 1), *out = calloc(bytes + 9, 1), *left = calloc(bytes + 9, 1);
    float *mine = malloc(bytes + 4);
    const float *want;
    dt_all_reduce_options_t o = *options;

    if (o.wire == DT_WIRE_2BIT)
        o.residual = (float *)(void *)(left + 1);
    for (size_t i = 0; i < count; i++)
        mine[i] = value(dt_rank(), i, 0);
    memset(out, 0xa5, bytes + 9);
    memcpy(in_place ? out + 1 : in + 1, mine, bytes);
    want = expect(count, op == DT_AVG ? dt_size() : 1, &o);
    NEED(dt_all_reduce_with(DT_WORLD, in_place ? DT_IN_PLACE : in + 1, out + 1, count, DT_F32, op,
                            &o) == DT_OK);
    NEED(memcmp(out + 1, want, bytes) == 0);
    NEED(in_place || memcmp(in + 1, mine, bytes) == 0);
    for (int i = 1; i < 9; i++)
        NEED(out[bytes + (size_t)i] == 0xa5);
    free(in);
    free(out);
    free(left);
    free(mine);
    return 0;
}

static int formats(int rank, void *arg)
{
    static const size_t counts[] = { 0, 1, 2, 255, 257, 4095, 4097, 70001, MOST };
    dt_all_reduce_options_t o = none;

    (void)rank;
    (void)arg;
    NEED(dt_init() == DT_OK);
    for (o.wire = DT_WIRE_EXACT; o.wire <= DT_WIRE_2BIT; o.wire++) {
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            o.threshold = c % 2 ? 0.25F : 0.3F;
            NEED(try_one(counts[c], c % 3 ? DT_SUM : DT_AVG, &o, c % 2) == 0);
        }
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void run_as(const char *hosts, int (*body)(int, void *))
{
    placement = hosts;
    for (int i = 0; i < EXPECTED && !expected[i]; i++)
        expected[i] = testjob_shared(MOST * sizeof **expected);
    testjob_must_pass(hosts, body, NULL);
}

static void every_format_gives_its_documented_results(void **state)
{
    static const char *const placements[] = {
        "1", "3", "1 1", "3 1 2", "@012020", "1 7", "1 1 1 1 1 1 1 1 1"
    };

    (void)state;
    for (size_t i = 0; i < sizeof placements / sizeof *placements; i++)
        run_as(placements[i], formats);
}

/* The sum of all inputs equals the sum of all results and remaining residuals: exactly for 2 bits,
 * whose threshold is a power of two, and nearly for other formats, whose scales are not. */
static int residuals(int rank, void *arg)
{
    enum { COUNT = 9001, CALLS = 6 };
    static float v[COUNT], residual[COUNT];
    static double inputs[COUNT], results[COUNT], left[COUNT];
    dt_all_reduce_options_t o = none;

    (void)arg;
    NEED(dt_init() == DT_OK);
    o.residual = residual;
    o.threshold = 0.25F;
    for (o.wire = DT_WIRE_EXACT; o.wire <= DT_WIRE_2BIT; o.wire++) {
        memset(inputs, 0, sizeof inputs);
        memset(results, 0, sizeof results);
        memset(residual, 0, sizeof residual);
        for (int step = 0; step < CALLS; step++) {
            double weight = step % 2 ? dt_size() : 1;

            for (size_t i = 0; i < COUNT; i++) {
                v[i] = value(rank, i, step);
                inputs[i] += (double)v[i];
            }
            NEED(dt_all_reduce_with(DT_WORLD, DT_IN_PLACE, v, COUNT, DT_F32,
                                    step % 2 ? DT_AVG : DT_SUM, &o) == DT_OK);
            for (size_t i = 0; i < COUNT; i++)
                results[i] += (double)v[i] * weight;
        }
        for (size_t i = 0; i < COUNT; i++)
            left[i] = (double)residual[i];
        NEED(dt_all_reduce(DT_WORLD, DT_IN_PLACE, inputs, COUNT, DT_F64, DT_SUM) == DT_OK);
        NEED(dt_all_reduce(DT_WORLD, DT_IN_PLACE, left, COUNT, DT_F64, DT_SUM) == DT_OK);
        for (size_t i = 0; i < COUNT; i++) {
            double error = fabs(inputs[i] - results[i] - left[i]);

            NEED(error <= CALLS * dt_size() * 1e-6);
        }
        NEED(o.wire != DT_WIRE_EXACT || left[0] == 0);
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void only_rounding_is_lost(void **state)
{
    static const char *const placements[] = { "2", "1 1", "3 1 2", "1 1 1 1 1 1 1 1" };

    (void)state;
    for (size_t i = 0; i < sizeof placements / sizeof *placements; i++)
        run_as(placements[i], residuals);
}

/* ---- factors ---- */

static int scaling(int rank, void *arg)
{
    static const double factors[] = { 1, 0, -1, 0.5, 3, NAN };
    enum { COUNT = 1003 };
    float in[COUNT], out[COUNT];
    double wide[COUNT];
    dt_all_reduce_options_t o = none;

    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int k = 0; k < 36; k++) {
        double want = 0;

        o.prescale = factors[k % 6];
        o.postscale = factors[k / 6];
        for (int i = 0; i < COUNT; i++)
            wide[i] = in[i] = (float)(rank + 1);
        for (int i = 1; i <= dt_size(); i++)
            want += i * o.prescale;
        want *= o.postscale;
        NEED(dt_all_reduce_with(DT_WORLD, in, out, COUNT, DT_F32, DT_SUM, &o) == DT_OK);
        NEED(dt_all_reduce_with(DT_WORLD, wide, wide, COUNT, DT_F64, DT_SUM, &o) == DT_OK);
        for (int i = 0; i < COUNT; i++) {
            NEED(in[i] == (float)(rank + 1));
            NEED(isnan(want) ? isnan(out[i]) : out[i] == (float)want);
            NEED(isnan(want) ? isnan(wide[i]) : wide[i] == want);
        }
    }
    NEED(dt_all_reduce_with(DT_WORLD, NULL, NULL, 0, DT_F16, DT_SUM, &o) == DT_OK);
    NEED(dt_all_reduce_with(DT_WORLD, in, out, COUNT, DT_F32, DT_SUM, NULL) == DT_OK);
    NEED(out[0] == (float)(dt_size() * (dt_size() + 1) / 2));
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void factors_scale_inputs_and_results(void **state)
{
    (void)state;
    run_as("1", scaling);
    run_as("3", scaling);
    run_as("2 1", scaling);
}

/* ---- disagreement ---- */

static const struct difference {
    const char *hosts;
    dt_all_reduce_options_t others;
    dt_all_reduce_options_t last; /* options of the last rank */
    const char *text;             /* of the error on a rank other than the last */
} differences[] = {
    { "3",
      { sizeof none, 0.5, 1, NULL, DT_WIRE_EXACT, 0 },
      { sizeof none, 0.25, 1, NULL, DT_WIRE_EXACT, 0 },
      "rank 2 (host0) called all-reduce of 4 f32 (sum) with factors, call 2, with other options" },
    { "1 1",
      { sizeof none, 1, 1, NULL, DT_WIRE_EXACT, 0 },
      { sizeof none, 1, 0.5, NULL, DT_WIRE_EXACT, 0 },
      "rank 1 (host1) called all-reduce of 4 f32 (sum) with factors, call 2" },
    { "1 1",
      { sizeof none, 1, 1, NULL, DT_WIRE_F16, 0 },
      { sizeof none, 1, 1, NULL, DT_WIRE_BF16, 0 },
      "rank 1 (host1) called all-reduce of 4 f32 (sum) as bf16, call 2" },
    { "2 1",
      { sizeof none, 1, 1, some, DT_WIRE_2BIT, 1 },
      { sizeof none, 1, 1, some, DT_WIRE_2BIT, 2 },
      "all-reduce of 4 f32 (sum) as 2bit with a threshold, call 2" },
    { "3",
      { sizeof none, 1, 1, NULL, DT_WIRE_EXACT, 0 },
      { sizeof none, 1, 1, NULL, DT_WIRE_INT8, 0 },
      "rank 2 (host0) called all-reduce of 4 f32 (sum) as int8, call 2" },
};

static int differing(int rank, void *arg)
{
    const struct difference *d = arg;
    float v[4] = { 0 };

    NEED(dt_init() == DT_OK);
    NEED(dt_all_reduce_with(DT_WORLD, DT_IN_PLACE, v, 4, DT_F32, DT_SUM,
                            rank == dt_size() - 1 ? &d->last : &d->others) == DT_ERR_MISMATCH);
    NEED(rank == dt_size() - 1 || strstr(dt_last_error(), d->text));
    NEED(dt_finalize() == DT_ERR_MISMATCH);
    return 0;
}

/* A program without options, on hosts with different settings. */
static int told_differently(int rank, void *arg)
{
    static float v[4096];

    (void)arg;
    setenv("DTRUN_WIRE", rank ? "f16" : "exact", 1);
    NEED(dt_init() == DT_OK);
    NEED(dt_all_reduce(DT_WORLD, DT_IN_PLACE, v, 4095, DT_F32, DT_SUM) == DT_OK);
    NEED(dt_all_reduce(DT_WORLD, DT_IN_PLACE, v, 4096, DT_F32, DT_SUM) == DT_ERR_MISMATCH);
    NEED(strstr(dt_last_error(), "all-reduce of 4096 f32 (sum) as f16, call 3") != NULL);
    NEED(dt_finalize() == DT_ERR_MISMATCH);
    return 0;
}

static void ranks_with_different_options_get_an_error(void **state)
{
    struct testjob_result result;

    (void)state;
    for (size_t i = 0; i < sizeof differences / sizeof *differences; i++) {
        struct testjob_plan plan = { .hosts = differences[i].hosts,
                                     .body = differing,
                                     .arg = (void *)(uintptr_t)&differences[i] };

        assert_int_equal(testjob_run(&plan, &result), 0);
        for (int k = 0; k < result.n; k++)
            assert_int_equal(result.ranks[k].status, 0);
    }
    run_as("1 1", told_differently);
}

/* A program without options, on hosts with the same setting. */
static int told_alike(int rank, void *arg)
{
    static float v[4096], want[4096];
    dt_all_reduce_options_t f16 = none;

    (void)arg;
    f16.wire = DT_WIRE_F16;
    setenv("DTRUN_WIRE", "f16", 1);
    NEED(dt_init() == DT_OK);
    for (size_t i = 0; i < 4096; i++)
        v[i] = value(rank, i, 0);
    reference(want, 4096, 0, dt_size(), &f16);
    NEED(dt_all_reduce(DT_WORLD, DT_IN_PLACE, v, 4096, DT_F32, DT_AVG) == DT_OK);
    NEED(memcmp(v, want, sizeof v) == 0);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static int told_what_cannot_be(int rank, void *arg)
{
    (void)rank;
    (void)arg;
    setenv("DTRUN_WIRE", "2bit", 1);
    NEED(dt_init() == DT_ERR_ARG);
    NEED(strstr(dt_last_error(), "dt_init: DTRUN_WIRE=2bit is not possible") != NULL);
    setenv("DTRUN_WIRE", "int8", 1);
    NEED(dt_init() == DT_OK);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void the_environment_reaches_every_rank(void **state)
{
    (void)state;
    run_as("2 1", told_alike);
    run_as("1 1", told_what_cannot_be);
}

/* Ranks without data learn the options of others and the setting of the environment. */
static int uneven(int rank, void *arg)
{
    static float v[4096];
    dt_all_reduce_options_t o = none;
    int last;

    (void)arg;
    o.wire = DT_WIRE_F16;
    setenv("DTRUN_WIRE", "bf16", 1);
    NEED(dt_init() == DT_OK);
    NEED(dt_join_begin(DT_WORLD) == DT_OK);
    if (rank == 0) {
        v[0] = 1 + 0x1p-9F;
        NEED(dt_all_reduce_with(DT_WORLD, DT_IN_PLACE, v, 4096, DT_F32, DT_SUM, &o) == DT_OK);
        NEED(v[0] == 1 + 0x1p-9F);
        NEED(dt_all_reduce(DT_WORLD, DT_IN_PLACE, v, 4096, DT_F32, DT_SUM) == DT_OK);
        NEED(v[0] == 1);
    }
    NEED(dt_join(DT_WORLD, &last) == DT_OK);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void ranks_without_data_use_the_options_of_others(void **state)
{
    (void)state;
    run_as("1 1", uneven);
}

static int overlapping(int rank, void *arg)
{
    float v[8] = { 0 };
    dt_all_reduce_options_t o = none;

    (void)rank;
    (void)arg;
    NEED(dt_init() == DT_OK);
    o.residual = v + 3;
    NEED(dt_all_reduce_with(DT_WORLD, DT_IN_PLACE, v, 4, DT_F32, DT_SUM, &o) == DT_ERR_ARG);
    NEED(strstr(dt_last_error(), "the residual overlaps in or out") != NULL);
    o.residual = v + 4;
    NEED(dt_all_reduce_with(DT_WORLD, DT_IN_PLACE, v, 4, DT_F32, DT_SUM, &o) == DT_OK);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void a_residual_may_not_overlap_other_buffers(void **state)
{
    (void)state;
    run_as("2", overlapping);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_that_fit_the_call_are_accepted),
        cmocka_unit_test(options_of_an_unknown_version_are_refused),
        cmocka_unit_test(options_without_meaning_are_refused),
        cmocka_unit_test(options_for_other_types_and_operations_are_refused),
        cmocka_unit_test(a_residual_of_device_memory_needs_a_wire_format),
        cmocka_unit_test(options_of_a_later_version_are_known_by_their_size),
        cmocka_unit_test(the_environment_chooses_for_large_sums_of_f32),
        cmocka_unit_test(equal_options_have_the_same_mark),
        CHECKS("22", every_format_gives_its_documented_results),
        CHECKS("22", only_rounding_is_lost),
        CHECKS("4, 16", factors_scale_inputs_and_results),
        cmocka_unit_test(ranks_with_different_options_get_an_error),
        cmocka_unit_test(the_environment_reaches_every_rank),
        cmocka_unit_test(ranks_without_data_use_the_options_of_others),
        cmocka_unit_test(a_residual_may_not_overlap_other_buffers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
