/* The arithmetic of the GPU kernel, compiled for this processor: its results have the same bytes as
 * reductions in host memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "runtime/gpu/fold/fold_kernel.h"
#include "runtime/kernels/reduce.h"
#include "tests/unit/checks.h"

enum { RANKS = 5, COUNT = 65536 + 300, ROOM = COUNT * 8 };

static _Alignas(64) uint8_t sources[RANKS][ROOM];
static _Alignas(64) uint8_t scaled[RANKS][ROOM];
static _Alignas(64) uint8_t want[ROOM], got[ROOM];

static uint64_t next_random(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

/* Numbers of similar size, so that sums round. */
static void put_number(dt_dtype_t t, uint8_t *at, uint64_t random)
{
    double wide = ldexp((double)(int32_t)random, (int)(random >> 32) % 4 - 31);
    float narrow = (float)wide;
    uint32_t bits;

    memcpy(&bits, &narrow, sizeof bits);
    if (t == DT_F64)
        memcpy(at, &wide, sizeof wide);
    else if (t == DT_F32)
        memcpy(at, &narrow, sizeof narrow);
    else if (t == DT_BF16)
        memcpy(at, (uint8_t *)&bits + 2, 2);
    else
        memcpy(at, (const uint16_t[]){ (uint16_t)(random & 0x83ff) | 0x3800 }, 2);
}

/* Source 0 begins with every 16-bit pattern. Part of the rest is random bits: as floats, those are
 * NaNs of all kinds, subnormals and infinities too. */
static void fill(dt_dtype_t t, uint8_t *p, size_t source)
{
    size_t size = dt_dtype_size(t);
    uint64_t x = (source + 1) * 0x9e3779b97f4a7c15;

    for (size_t i = 0; i < COUNT; i++) {
        uint64_t random = next_random(&x), pattern = i << 8 * (size - size / 2);

        if (size == 2)
            pattern = i;
        if (source == 0 && i < 65536)
            memcpy(p + i * size, &pattern, size);
        else if (!dt_dtype_is_float(t) || random % 8 == 0)
            memcpy(p + i * size, &random, size);
        else
            put_number(t, p + i * size, random);
    }
}

struct factors {
    double prescale, divisor, postscale;
};

static void fold_on_host(dt_dtype_t t, dt_op_t op, size_t n, const struct factors *f)
{
    const void *src[RANKS];
    struct dt_fold fold = {
        .dst = want, .src = src, .n = n, .count = COUNT, .divisor = f->divisor
    };

    for (size_t s = 0; s < n; s++) {
        src[s] = sources[s];
        if (f->prescale != 1) {
            dt_scale(scaled[s], sources[s], COUNT, t, f->prescale);
            src[s] = scaled[s];
        }
    }
    dt_fold(&fold, t, op);
    if (f->postscale != 1)
        dt_scale(want, want, COUNT, t, f->postscale);
}

/* Runs the kernel's threads one after the other, each on its own elements. */
static void fold_as_kernel(dt_dtype_t t, dt_op_t op, size_t n, const struct factors *f, void *dst)
{
    enum { THREADS = 96 };
    struct dt_gpu_fold fold = { .dst = (uintptr_t)dst,
                                .src = (uintptr_t)sources,
                                .stride = ROOM,
                                .count = COUNT,
                                .prescale = f->prescale,
                                .divisor = f->divisor,
                                .postscale = f->postscale,
                                .n = (uint32_t)n,
                                .dtype = t,
                                .op = op };

    for (uint64_t thread = 0; thread < THREADS; thread++)
        dt_gpu_fold_some(&fold, thread, THREADS);
}

static void compare(dt_dtype_t t, dt_op_t op, size_t n, struct factors f)
{
    size_t size = dt_dtype_size(t);

    fold_on_host(t, op, n, &f);
    fold_as_kernel(t, op, n, &f, got);
    for (size_t i = 0; i < COUNT; i++) {
        if (memcmp(got + i * size, want + i * size, size) != 0)
            fail_msg("%s of %zu %s: element %zu differs", dt_op_name(op), n, dt_dtype_name(t), i);
    }
}

static void every_type_and_operation_matches_host_bytes(void **state)
{
    (void)state;
    for (dt_dtype_t t = DT_I8; t <= DT_F64; t++) {
        for (size_t s = 0; s < RANKS; s++)
            fill(t, sources[s], s);
        for (dt_op_t op = DT_SUM; op <= DT_BXOR; op++) {
            for (size_t n = 2; n <= RANKS && dt_op_applies(op, t); n++)
                compare(t, op, n, (struct factors){ 1, op == DT_AVG ? (double)n : 1, 1 });
        }
    }
}

static void factors_match_host_bytes(void **state)
{
    static const struct factors factors[] = {
        { 0.3, 1, 1 }, { 1, 1, 0.7 }, { 3, 3, 1.0 / 3 }, { 1, 2.5, 1 }, { 1e30, 7, 1e-30 },
    };

    (void)state;
    for (dt_dtype_t t = DT_F16; t <= DT_F64; t++) {
        for (size_t s = 0; s < RANKS; s++)
            fill(t, sources[s], s);
        for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
            for (dt_op_t op = DT_SUM; op <= DT_MAX; op++)
                compare(t, op, 3, factors[i]);
        }
    }
}

static void one_source_is_divided_or_scaled(void **state)
{
    (void)state;
    for (dt_dtype_t t = DT_I8; t <= DT_F64; t++) {
        fill(t, sources[0], 0);
        compare(t, DT_SUM, 1, (struct factors){ 1, 3, 1 });
        if (dt_dtype_is_float(t))
            compare(t, DT_SUM, 1, (struct factors){ 1, 1, 0.7 });
    }
}

static void the_result_may_overwrite_source_0(void **state)
{
    static const struct factors none = { 1, 1, 1 };

    (void)state;
    for (dt_dtype_t t = DT_I8; t <= DT_F64; t++) {
        for (size_t s = 0; s < RANKS; s++)
            fill(t, sources[s], s);
        fold_on_host(t, DT_SUM, RANKS, &none);
        fold_as_kernel(t, DT_SUM, RANKS, &none, sources[0]);
        assert_memory_equal(sources[0], want, COUNT * dt_dtype_size(t));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_and_operation_matches_host_bytes),
        cmocka_unit_test(factors_match_host_bytes),
        cmocka_unit_test(one_source_is_divided_or_scaled),
        cmocka_unit_test(the_result_may_overwrite_source_0),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
