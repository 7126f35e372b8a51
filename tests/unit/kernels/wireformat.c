/* The wire formats: every instruction set of this machine gives the bytes of the plain one, and
 * errors stay within the bounds of the header. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "runtime/kernels/reduce.h"
#include "runtime/kernels/wireformat.h"
#include "tests/unit/checks.h"

enum { MOST = 3 * DT_FORMAT_BLOCK + 77, CANARY = 64 };

static const char *const sets[] = { "plain", "avx2", "avx512", "neon" };

static float of_bits(uint32_t bits)
{
    float v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

static uint32_t bits_of(float v)
{
    uint32_t bits;

    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static uint32_t random_bits(void)
{
    static uint64_t state = 1;

    state = state * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(state >> 32);
}

static float sized(float size)
{
    return ((float)random_bits() / 4294967296.0F - 0.5F) * 2 * size;
}

/* ---- known numbers ---- */

static void halves_are_rounded_to_the_nearest(void **state)
{
    static const struct {
        enum dt_wireformat format;
        uint32_t in;
        uint16_t out;
    } cases[] = {
        { DT_FORMAT_F16, 0x00000000, 0x0000 },  { DT_FORMAT_F16, 0x80000000, 0x8000 },
        { DT_FORMAT_F16, 0x3f800000, 0x3c00 },  { DT_FORMAT_F16, 0x3f801000, 0x3c00 }, /* a tie */
        { DT_FORMAT_F16, 0x3f803000, 0x3c02 },                                         /* another */
        { DT_FORMAT_F16, 0x3f801001, 0x3c01 },  { DT_FORMAT_F16, 0xc77fe000, 0xfbff },
        { DT_FORMAT_F16, 0x477fefff, 0x7bff },  { DT_FORMAT_F16, 0x477ff000, 0x7c00 },
        { DT_FORMAT_F16, 0x33800000, 0x0001 },  { DT_FORMAT_F16, 0x33000000, 0x0000 },
        { DT_FORMAT_F16, 0x33000001, 0x0001 },  { DT_FORMAT_F16, 0x00000001, 0x0000 },
        { DT_FORMAT_F16, 0x7f800000, 0x7c00 },  { DT_FORMAT_F16, 0xff800000, 0xfc00 },
        { DT_FORMAT_F16, 0xffc12345, 0x7e00 },  { DT_FORMAT_F16, 0x7f800001, 0x7e00 },
        { DT_FORMAT_BF16, 0x3f800000, 0x3f80 }, { DT_FORMAT_BF16, 0x3f808000, 0x3f80 }, /* a tie */
        { DT_FORMAT_BF16, 0x3f818000, 0x3f82 }, { DT_FORMAT_BF16, 0x3f808001, 0x3f81 },
        { DT_FORMAT_BF16, 0x80000001, 0x8000 }, { DT_FORMAT_BF16, 0x00018000, 0x0002 },
        { DT_FORMAT_BF16, 0x7f7fffff, 0x7f80 }, { DT_FORMAT_BF16, 0xff800000, 0xff80 },
        { DT_FORMAT_BF16, 0xff800001, 0x7fc0 }, { DT_FORMAT_BF16, 0x7fffffff, 0x7fc0 },
    };
    float in[20];
    uint16_t out[20];

    (void)state;
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
        if (!dt_reduce_use(sets[s]))
            continue;
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            for (int k = 0; k < 20; k++)
                in[k] = of_bits(cases[i].in);
            dt_wireformat_pack(cases[i].format, out, in, 20, 0);
            for (int k = 0; k < 20; k++)
                assert_int_equal(out[k], cases[i].out);
        }
    }
}

/* Blocks of numbers, the first of which determines the result. 2 bits use the threshold 0.5. */
static void counts_and_scales_are_as_documented(void **state)
{
    static const struct {
        enum dt_wireformat format;
        float in;
        float rest;
        float out;
        float out_rest;
    } cases[] = {
        { DT_FORMAT_INT8, 127, 1, 127, 1 },
        { DT_FORMAT_INT8, -254, 1.5F, -254, 2 }, /* ties go to the even count */
        { DT_FORMAT_INT8, -254, 5, -254, 4 },
        { DT_FORMAT_INT8, 0, 0, 0, 0 },
        { DT_FORMAT_INT8, 0x1p-140F, 0, 0, 0 },
        { DT_FORMAT_INT8, 0x1p-120F, 0x1p-126F, 0x1p-120F, 0x1p-126F },
        { DT_FORMAT_INT8, NAN, 1, NAN, NAN },
        { DT_FORMAT_INT8, -INFINITY, 1, NAN, NAN },
        { DT_FORMAT_COUNT2, 0.5F, 0.499F, 0.5F, 0 },
        { DT_FORMAT_COUNT2, -0.5F, -0.499F, -0.5F, 0 },
        { DT_FORMAT_COUNT2, 1000, -0.0F, 0.5F, 0 },
        { DT_FORMAT_COUNT2, NAN, -7, NAN, -0.5F },
        { DT_FORMAT_COUNT2, INFINITY, 1, NAN, 0.5F },
        { DT_FORMAT_COUNT2, FLT_MAX, 1e-42F, 0.5F, 0 },
        { DT_FORMAT_COUNT4, 7, -7, 3.5F, -3.5F },
        { DT_FORMAT_COUNT4, NAN, 0, NAN, 0 },
        { DT_FORMAT_COUNT8, 127, -127, 63.5F, -63.5F },
        { DT_FORMAT_COUNT8, NAN, -1, NAN, -0.5F },
    };
    static const size_t counts[] = { 1, 2, 255, 256, 300 };
    float in[300], out[300];
    uint8_t packed[1300];

    (void)state;
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
        if (!dt_reduce_use(sets[s]))
            continue;
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
                for (size_t k = 0; k < counts[c]; k++)
                    in[k] = k % DT_FORMAT_BLOCK ? cases[i].rest : cases[i].in;
                dt_wireformat_pack(cases[i].format, packed, in, counts[c], 0.5F);
                dt_wireformat_unpack(cases[i].format, out, packed, counts[c], 0.5F);
                for (size_t k = 0; k < counts[c]; k++) {
                    float want = k % DT_FORMAT_BLOCK ? cases[i].out_rest : cases[i].out;

                    assert_true(out[k] == want || (isnan(out[k]) && isnan(want)));
                }
            }
        }
    }
}

/* ---- random numbers ---- */

/* Fills in numbers of a kind that is hard for the format. */
static void fill(float *v, size_t n, int kind)
{
    for (size_t i = 0; i < n; i++) {
        float size = ldexpf(1, (int)(random_bits() % 60) - 30);

        v[i] = kind == 0 ? sized(1) : kind == 1 ? sized(size) : of_bits(random_bits());
        if (kind == 3)
            v[i] = sized(FLT_MAX);
        if (kind == 4)
            v[i] = sized(0x1p-125F);
    }
}

static double limit(enum dt_wireformat f, const float *block, size_t n, float v)
{
    double most = 0, scale;

    if (f == DT_FORMAT_F16)
        return fmax(fabs((double)v) * 0x1p-11, 0x1p-25);
    if (f == DT_FORMAT_BF16)
        return fmax(fabs((double)v) * 0x1p-8, 0x1p-134);
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)block[i]));
    scale = fmax(most / 127, 0x1p-126);
    return scale * (0.5 + 127 * 0x1p-22);
}

static bool finite_block(const float *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(v[i]))
            return false;
    }
    return true;
}

static void near(enum dt_wireformat f, const float *in, const float *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t at = i / DT_FORMAT_BLOCK * DT_FORMAT_BLOCK;
        size_t n = count - at < DT_FORMAT_BLOCK ? count - at : DT_FORMAT_BLOCK;

        if (f == DT_FORMAT_INT8 && !finite_block(in + at, n)) {
            assert_true(isnan(out[i]));
        } else if (isnan(in[i])) {
            assert_true(isnan(out[i]));
        } else if (isinf(out[i])) {
            assert_true(signbit(in[i]) == signbit(out[i]));
            assert_true(f == DT_FORMAT_F16 ? fabsf(in[i]) >= 65520 : fabsf(in[i]) >= 0x1.ffp127F);
        } else {
            double error = fabs((double)in[i] - (double)out[i]);

            if (error > limit(f, in + at, n, in[i]))
                printf("format %d: %a arrives as %a\n", f, (double)in[i], (double)out[i]);
            assert_true(error <= limit(f, in + at, n, in[i]));
        }
    }
}

static void errors_stay_within_their_bounds(void **state)
{
    static float in[MOST], out[MOST];
    static uint8_t packed[4 * MOST];

    (void)state;
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
        if (!dt_reduce_use(sets[s]))
            continue;
        for (int round = 0; round < 200; round++) {
            for (enum dt_wireformat f = DT_FORMAT_F16; f <= DT_FORMAT_INT8; f++) {
                size_t count = round ? random_bits() % MOST : MOST;

                fill(in, count, round % 5);
                dt_wireformat_pack(f, packed, in, count, 0);
                dt_wireformat_unpack(f, out, packed, count, 0);
                near(f, in, out, count);
            }
        }
    }
}

static void all_whole(float *v, size_t n, int most)
{
    for (size_t i = 0; i < n; i++)
        v[i] = random_bits() % 50 ? (float)((int)(random_bits() % (2U * (unsigned)most + 1)) - most)
                                  : NAN;
}

static void all_sets_give_the_same_bytes(void **state)
{
    static float in[MOST + 1], out[2][MOST + 1];
    static uint8_t packed[2][4 * MOST + 2 * CANARY];

    (void)state;
    for (size_t s = 1; s < sizeof sets / sizeof *sets; s++) {
        for (unsigned round = 0; dt_reduce_use(sets[s]) && round < 300; round++) {
            enum dt_wireformat f = round % DT_FORMATS;
            size_t count = round < 60 ? round : random_bits() % MOST, odd = round % 3;
            size_t bytes = dt_wireformat_bytes(f, count);
            uint8_t *from = (uint8_t *)in + odd;
            float v[MOST];

            fill(v, count, (int)round % 5);
            if (f == DT_FORMAT_COUNT4 || f == DT_FORMAT_COUNT8)
                all_whole(v, count, f == DT_FORMAT_COUNT4 ? 7 : 127);
            memcpy(from, v, count * sizeof *v);
            for (int which = 0; which < 2; which++) {
                uint8_t *to = packed[which] + CANARY + odd;

                dt_reduce_use(which ? sets[s] : "plain");
                memset(packed[which], 0xa5, sizeof packed[which]);
                memset(out[which], 0xa5, sizeof out[which]);
                dt_wireformat_pack(f, to, from, count, 0.25F);
                dt_wireformat_unpack(f, (uint8_t *)out[which] + odd, to, count, 0.25F);
                for (int k = 0; k < CANARY; k++)
                    assert_true(to[-1 - k] == 0xa5 && to[bytes + (size_t)k] == 0xa5);
            }
            assert_memory_equal(packed[0], packed[1], sizeof packed[0]);
            assert_memory_equal(out[0], out[1], sizeof out[0]);
        }
    }
}

static void sizes_are_as_documented(void **state)
{
    static const struct {
        size_t count;
        size_t bytes[DT_FORMATS];
    } cases[] = {
        { 0, { 0, 0, 0, 0, 0, 0 } },
        { 1, { 2, 2, 5, 64, 128, 256 } },
        { 256, { 512, 512, 260, 64, 128, 256 } },
        { 257, { 514, 514, 265, 128, 256, 512 } },
        { 1 << 20, { 2 << 20, 2 << 20, 4096 * 260, 1 << 18, 1 << 19, 1 << 20 } },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (enum dt_wireformat f = 0; f < DT_FORMATS; f++)
            assert_int_equal(dt_wireformat_bytes(f, cases[i].count), cases[i].bytes[f]);
    }
}

/* ---- residuals ---- */

/* With a power of two as threshold nothing is rounded: the total that was sent plus the residual is
 * the input. */
static void what_was_sent_plus_the_residual_is_the_input(void **state)
{
    static float in[MOST], v[MOST], sent[MOST], residual[MOST];
    static double total_in[MOST], total_sent[MOST];
    static uint8_t packed[4 * MOST];

    (void)state;
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
        if (!dt_reduce_use(sets[s]))
            continue;
        memset(residual, 0, sizeof residual);
        memset(total_in, 0, sizeof total_in);
        memset(total_sent, 0, sizeof total_sent);
        for (int step = 0; step < 100; step++) {
            for (size_t i = 0; i < MOST; i++) {
                in[i] = (float)((int)(random_bits() % 4097) - 2048) * 0x1p-12F;
                v[i] = in[i] + residual[i];
                residual[i] = 0;
                total_in[i] += (double)in[i];
            }
            dt_wireformat_pack(DT_FORMAT_COUNT2, packed, v, MOST, 0.25F);
            dt_wireformat_unpack(DT_FORMAT_COUNT2, sent, packed, MOST, 0.25F);
            dt_wireformat_keep_error(residual, v, sent, MOST, 1);
            for (size_t i = 0; i < MOST; i++) {
                assert_true(sent[i] == 0 || fabsf(sent[i]) == 0.25F);
                total_sent[i] += (double)sent[i];
                assert_true(total_sent[i] + (double)residual[i] == total_in[i]);
            }
        }
    }
}

static void residuals_stay_finite(void **state)
{
    static const struct {
        float before, wanted, arrived, weight, after;
    } cases[] = {
        { 0, 1, 0.75F, 1, 0.25F },   { 1, 1, 0.75F, 4, 2 },    { 1, NAN, 1, 1, 0 },
        { 1, 1e5F, INFINITY, 1, 0 }, { 1, INFINITY, 0, 1, 0 }, { -0.5F, 2, 2, 1, -0.5F },
    };
    float residual[40], wanted[40], arrived[40];

    (void)state;
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
        for (size_t i = 0; dt_reduce_use(sets[s]) && i < sizeof cases / sizeof *cases; i++) {
            for (int k = 0; k < 40; k++) {
                residual[k] = cases[i].before;
                wanted[k] = cases[i].wanted;
                arrived[k] = cases[i].arrived;
            }
            dt_wireformat_keep_error(residual, wanted, arrived, 39, cases[i].weight);
            for (int k = 0; k < 39; k++)
                assert_true(bits_of(residual[k]) == bits_of(cases[i].after));
            assert_true(residual[39] == cases[i].before);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_are_rounded_to_the_nearest),
        cmocka_unit_test(counts_and_scales_are_as_documented),
        CHECKS("22", errors_stay_within_their_bounds),
        CHECKS("14, 22", all_sets_give_the_same_bytes),
        cmocka_unit_test(sizes_are_as_documented),
        CHECKS("22", what_was_sent_plus_the_residual_is_the_input),
        cmocka_unit_test(residuals_stay_finite),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
