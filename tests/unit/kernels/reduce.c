/* The arithmetic of all-reduce: every instruction set of this machine against a reference that
 * reduces one element at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "runtime/kernels/reduce.h"
#include "tests/unit/checks.h"
#include "tests/unit/sanitized.h"

/* ---- the reference ---- */

static double from_f16(uint16_t h)
{
    int exponent = h >> 10 & 31, mantissa = h & 1023;
    double sign = h & 0x8000 ? -1 : 1;

    if (exponent == 31)
        return mantissa ? NAN : sign * INFINITY;
    return sign * (exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24));
}

/* Rounds to a number of mantissa bits, ties to even, as nearbyint does. */
static double round_to(double x, int bits, int least_exponent)
{
    int e;

    if (x == 0 || isnan(x) || isinf(x))
        return x;
    frexp(x, &e);
    e = e - 1 < least_exponent ? least_exponent : e - 1;
    return ldexp(nearbyint(ldexp(x, bits - e)), e - bits);
}

static uint16_t to_f16(double x)
{
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    int e;

    if (isnan(x))
        return 0x7e00;
    x = round_to(fabs(x), 10, -14);
    if (x > 65504)
        return sign | 0x7c00;
    frexp(x, &e);
    if (x < ldexp(1, -14))
        return sign | (uint16_t)ldexp(x, 24);
    return sign | (uint16_t)(((e + 14) << 10) + ((int)ldexp(x, 11 - e) - 1024));
}

static float from_bf16(uint16_t b)
{
    uint32_t bits = (uint32_t)b << 16;
    float f;

    memcpy(&f, &bits, sizeof f);
    return f;
}

static uint16_t to_bf16(double x)
{
    float f = (float)round_to(x, 7, -126);
    uint32_t bits;

    if (isnan(x))
        return 0x7fc0;
    memcpy(&bits, &f, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static double float_op(dt_op_t op, double a, double b)
{
    switch (op) {
    case DT_PROD:
        return a * b;
    case DT_MIN:
        return isnan(a) || b < a ? b : a;
    case DT_MAX:
        return isnan(a) || b > a ? b : a;
    default:
        return a + b;
    }
}

static int64_t signed_op(dt_op_t op, int64_t a, int64_t b)
{
    return op == DT_MIN ? (b < a ? b : a) : (b > a ? b : a);
}

static uint64_t bits_op(dt_op_t op, uint64_t a, uint64_t b)
{
    switch (op) {
    case DT_PROD:
        return a * b;
    case DT_MIN:
        return b < a ? b : a;
    case DT_MAX:
        return b > a ? b : a;
    case DT_BAND:
        return a & b;
    case DT_BOR:
        return a | b;
    case DT_BXOR:
        return a ^ b;
    default:
        return a + b;
    }
}

static double load_float(dt_dtype_t t, const void *p)
{
    uint16_t h;
    float f;
    double d;

    switch (t) {
    case DT_F16:
        memcpy(&h, p, sizeof h);
        return from_f16(h);
    case DT_BF16:
        memcpy(&h, p, sizeof h);
        return (double)from_bf16(h);
    case DT_F32:
        memcpy(&f, p, sizeof f);
        return (double)f;
    default:
        memcpy(&d, p, sizeof d);
        return d;
    }
}

static void store_float(dt_dtype_t t, void *p, double x)
{
    uint64_t nan = 0x7ff8000000000000;
    uint32_t nanf = 0x7fc00000;
    float f = (float)x;
    uint16_t h = t == DT_F16 ? to_f16(x) : to_bf16(x);

    if (t == DT_F64)
        memcpy(p, isnan(x) ? (void *)&nan : (void *)&x, 8);
    else if (t == DT_F32)
        memcpy(p, isnan(x) ? (void *)&nanf : (void *)&f, 4);
    else
        memcpy(p, &h, 2);
}

/* f16, bf16 and f32 accumulate in f32. Their exact sums and products fit into a double, which is
 * then rounded to f32. The result is that of one operation in f32. */
static void expect_real(dt_dtype_t t, dt_op_t op, const void *const *src, size_t n, size_t i,
                        int divisor, void *out)
{
    size_t size = dt_dtype_size(t);
    double acc = load_float(t, (const char *)src[0] + i * size);

    for (size_t s = 1; s < n; s++) {
        acc = float_op(op, acc, load_float(t, (const char *)src[s] + i * size));
        acc = t == DT_F64 ? acc : (double)(float)acc;
    }
    if (divisor != 1)
        acc = t == DT_F64 ? acc / divisor : (double)((float)acc / (float)divisor);
    store_float(t, out, acc);
}

/* Loads little-endian bits of any width and extends them by their sign or by zeros. */
static uint64_t load_bits(dt_dtype_t t, const void *p)
{
    unsigned spare = 64 - 8 * (unsigned)dt_dtype_size(t);
    bool is_signed = t == DT_I8 || t == DT_I16 || t == DT_I32 || t == DT_I64;
    uint64_t v = 0;

    memcpy(&v, p, dt_dtype_size(t));
    return is_signed ? (uint64_t)((int64_t)(v << spare) >> spare) : v;
}

static void expect_integer(dt_dtype_t t, dt_op_t op, const void *const *src, size_t n, size_t i,
                           int divisor, void *out)
{
    size_t size = dt_dtype_size(t);
    bool is_signed = t == DT_I8 || t == DT_I16 || t == DT_I32 || t == DT_I64;
    uint64_t acc = load_bits(t, (const char *)src[0] + i * size);

    for (size_t s = 1; s < n; s++) {
        uint64_t next = load_bits(t, (const char *)src[s] + i * size);

        acc = is_signed && (op == DT_MIN || op == DT_MAX)
                  ? (uint64_t)signed_op(op, (int64_t)acc, (int64_t)next)
                  : bits_op(op, acc, next);
    }
    memcpy(out, &acc, size);
    if (divisor != 1) {
        acc = load_bits(t, out);
        acc = is_signed ? (uint64_t)((int64_t)acc / divisor) : acc / (unsigned)divisor;
        memcpy(out, &acc, size);
    }
}

static void expect(dt_dtype_t t, dt_op_t op, const void *const *src, size_t n, size_t count,
                   int divisor, void *out)
{
    for (size_t i = 0; i < count; i++)
        (dt_dtype_is_float(t) ? expect_real : expect_integer)(t, op, src, n, i, divisor,
                                                              (char *)out + i * dt_dtype_size(t));
}

/* ---- inputs ---- */

enum { RANKS = 8, LONGEST = 1200, ROOM = (LONGEST + 8) * 8 };

static uint64_t next_random(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

/* Random bytes for integers. For floats mostly numbers of similar size, with special values between
 * them: zeros of both signs, subnormals, infinities, NaNs of all kinds, and random bits. */
static void fill(dt_dtype_t t, uint8_t *p, size_t count, uint64_t seed)
{
    static const double odd[] = { 0.0, -0.0, 1e-40, -6e-8, INFINITY, -INFINITY, NAN, 65504 };
    size_t size = dt_dtype_size(t);
    uint64_t x = seed * 0x9e3779b97f4a7c15 + 1;

    for (size_t i = 0; i < count; i++) {
        uint64_t r = next_random(&x);

        if (!dt_dtype_is_float(t) || r % 16 == 0)
            memcpy(p + i * size, &r, size);
        else if (r % 16 == 1)
            store_float(t, p + i * size, odd[r / 16 % 8]);
        else
            store_float(t, p + i * size, ldexp((double)(int32_t)r, (int)(r >> 32) % 4 - 31));
    }
}

static void each_set(void (*check)(void))
{
    char names[64], *rest, *name;

    dt_reduce_choices(names, sizeof names);
    for (name = strtok_r(names, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        assert_true(dt_reduce_use(name));
        assert_string_equal(dt_reduce_isa(), name);
        check();
    }
    assert_true(dt_reduce_use(NULL));
}

/* The reduction that each instruction set makes, and what it makes of "before". */
static struct {
    dt_dtype_t dtype;
    dt_op_t op;
    struct dt_fold fold;
    size_t bytes;
    uint8_t before[ROOM], after[ROOM];
} folding;

static void fold_anew(void)
{
    uint8_t *to = folding.fold.dst;

    memcpy(to, folding.before, folding.bytes);
    to[-1] = to[folding.bytes] = 0xa5;
    dt_fold(&folding.fold, folding.dtype, folding.op);
    assert_memory_equal(to, folding.after, folding.bytes);
    assert_true(to[-1] == 0xa5 && to[folding.bytes] == 0xa5);
}

/* Reduces into source "into", or into a separate buffer if that is RANKS. Each buffer begins at
 * another distance from an aligned address. */
static void check_fold(dt_dtype_t t, dt_op_t op, size_t n, size_t count, size_t into)
{
    static uint8_t raw[RANKS + 1][1 + ROOM];
    size_t bytes = count * dt_dtype_size(t);
    const void *src[RANKS] = { NULL };
    uint8_t *at[RANKS + 1];

    for (size_t s = 0; s <= RANKS; s++)
        at[s] = raw[s] + 1 + (count * 3 + s * 5) % 8;
    for (size_t s = 0; s < n; s++) {
        fill(t, at[s], count, s + 31 * count);
        src[s] = at[s];
    }
    memset(at[RANKS], 0x5a, bytes);
    folding.dtype = t;
    folding.op = op;
    folding.fold = (struct dt_fold){
        .dst = at[into], .src = src, .n = n, .count = count, .divisor = op == DT_AVG ? (int)n : 1
    };
    folding.bytes = bytes;
    memcpy(folding.before, at[into], bytes);
    expect(t, op, src, n, count, (int)folding.fold.divisor, folding.after);
    each_set(fold_anew);
}

static void every_instruction_set_gives_the_same_results(void **state)
{
    (void)state;
    for (dt_dtype_t t = DT_I8; t <= DT_F64; t++) {
        for (dt_op_t op = DT_SUM; op <= DT_BXOR; op++) {
            for (size_t n = 2; n <= RANKS && dt_op_applies(op, t); n++) {
                for (size_t count = 0; count <= LONGEST;
                     count += count < 200 ? 1 + n % 3 + 2 * SANITIZED : 263)
                    check_fold(t, op, n, count, count % (n + 1) < n ? count % (n + 1) : RANKS);
            }
        }
    }
}

/* Every half, and every number between two halves that decides how to round. */
static void check_halves(void)
{
    for (uint32_t h = 0; h < 65536; h++) {
        uint16_t in[2] = { (uint16_t)h, 0x8000 }, out, want = to_f16(from_f16(in[0]));
        uint16_t bwant = to_bf16((double)from_bf16(in[0]));
        const void *src[] = { &in[0], &in[1] };
        struct dt_fold fold = { .dst = &out, .src = src, .n = 2, .count = 1, .divisor = 1 };

        dt_fold(&fold, DT_F16, DT_SUM); /* adding -0 changes nothing */
        assert_int_equal(out, want);
        dt_fold(&fold, DT_BF16, DT_SUM);
        assert_int_equal(out, bwant);
    }
}

static void every_half_survives_a_conversion(void **state)
{
    (void)state;
    each_set(check_halves);
}

/* 40 halves at a time, so that vectors and what is left over are both used. */
static void check_rounding(void)
{
    enum { N = 40 };

    for (uint32_t h = 0; h < 0x7c00; h += N) {
        uint16_t a[N], out[N];

        for (int quarter = 0; quarter <= 4; quarter++) {
            uint16_t step[N];
            const void *src[] = { a, step };
            struct dt_fold fold = { .dst = out, .src = src, .n = 2, .count = N, .divisor = 1 };

            for (uint32_t i = 0; i < N; i++) {
                double gap = from_f16((uint16_t)(h + i + 1)) - from_f16((uint16_t)(h + i));

                a[i] = (uint16_t)(h + i);
                step[i] = to_f16(isfinite(gap) ? gap * quarter / 4 : 16.0 * quarter);
            }
            dt_fold(&fold, DT_F16, DT_SUM);
            for (int i = 0; i < N; i++)
                assert_int_equal(out[i], to_f16(from_f16(a[i]) + from_f16(step[i])));
        }
    }
}

static void halves_round_to_the_nearest_even(void **state)
{
    (void)state;
    each_set(check_rounding);
}

static void check_one_rounding(void)
{
    uint16_t third = to_f16(1.0 / 3), b_third = to_bf16(1.0 / 3), out;
    const void *src[RANKS], *b_src[RANKS];
    struct dt_fold fold = { .dst = &out, .src = src, .n = RANKS, .count = 1, .divisor = 1 };

    for (int i = 0; i < RANKS; i++) {
        src[i] = &third;
        b_src[i] = &b_third;
    }
    dt_fold(&fold, DT_F16, DT_SUM);
    assert_int_equal(out, to_f16(8 * from_f16(third)));
    fold.src = b_src;
    dt_fold(&fold, DT_BF16, DT_SUM);
    assert_int_equal(out, to_bf16(8 * (double)from_bf16(b_third)));
}

static void eight_thirds_are_rounded_once(void **state)
{
    (void)state;
    each_set(check_one_rounding);
}

/* ---- single values, computed as the manual says ---- */

#define TWO(type, x, y, dtype, op)                                                                 \
    ({                                                                                             \
        type x_ = (x), y_ = (y), out_;                                                             \
        const void *src_[] = { &x_, &y_ };                                                         \
        struct dt_fold fold_ = {                                                                   \
            .dst = &out_, .src = src_, .n = 2, .count = 1, .divisor = (op) == DT_AVG ? 2 : 1       \
        };                                                                                         \
        dt_fold(&fold_, dtype, op);                                                                \
        out_;                                                                                      \
    })

static void check_single_values(void)
{
    assert_int_equal(TWO(int8_t, 100, 100, DT_I8, DT_SUM), -56);
    assert_int_equal(TWO(int8_t, 100, 100, DT_I8, DT_AVG), -28);
    assert_int_equal(TWO(int16_t, 256, 256, DT_I16, DT_PROD), 0);
    assert_int_equal(TWO(int8_t, INT8_MIN, -1, DT_I8, DT_PROD), INT8_MIN);
    assert_int_equal(TWO(int32_t, INT32_MIN, -1, DT_I32, DT_PROD), INT32_MIN);
    assert_true(TWO(int64_t, INT64_MIN, -1, DT_I64, DT_PROD) == INT64_MIN);
    assert_int_equal(TWO(uint16_t, 0xffff, 0xffff, DT_U16, DT_PROD), 1);
    assert_int_equal(TWO(uint32_t, UINT32_MAX, 1, DT_U32, DT_AVG), 0); /* the sum has wrapped */
    assert_int_equal(TWO(int32_t, INT32_MIN, -1, DT_I32, DT_SUM), INT32_MAX);
    assert_int_equal(TWO(int32_t, -7, 0, DT_I32, DT_AVG), -3);
    assert_true(TWO(uint64_t, UINT64_MAX, 1, DT_U64, DT_MAX) == UINT64_MAX);
    assert_true(TWO(uint64_t, UINT64_MAX, 1, DT_U64, DT_MIN) == 1);
    assert_true(TWO(int64_t, -1, 1, DT_I64, DT_MIN) == -1);
    assert_int_equal(TWO(uint8_t, 0xf0, 0x3c, DT_U8, DT_BXOR), 0xcc);
    for (dt_op_t op = DT_MIN; op <= DT_MAX; op++) {
        assert_true(TWO(float, NAN, 3, DT_F32, op) == 3 && TWO(float, 3, NAN, DT_F32, op) == 3);
        assert_true(isnan(TWO(double, NAN, NAN, DT_F64, op)));
    }
    assert_true(signbit(TWO(float, -0.0f, 0.0f, DT_F32, DT_MAX))); /* equal: the first one stays */
    assert_true(isnan(TWO(float, INFINITY, -INFINITY, DT_F32, DT_SUM)));
    assert_true(TWO(float, 1e-45f, 1e-45f, DT_F32, DT_SUM) > 0); /* subnormals are kept */
    assert_int_equal(TWO(uint16_t, 0x7bff, 0x7bff, DT_F16, DT_SUM), 0x7c00); /* overflow */
}

static void single_values_are_as_the_manual_says(void **state)
{
    (void)state;
    each_set(check_single_values);
}

/* Divides by more ranks than 8-bit types can express. */
static void check_divide(void)
{
    enum { N = 137 };
    static const int divisors[] = { 2, 3, 7, 128, 255, 256, 1000, 1000003 };
    static uint8_t in[1 + N * 8], out[1 + N * 8], want[8];
    const void *src[] = { in + 1 }, *same[] = { out + 1 };

    for (size_t d = 0; d < sizeof divisors / sizeof *divisors; d++) {
        for (dt_dtype_t t = DT_I8; t <= DT_F64; t++) {
            size_t size = dt_dtype_size(t);

            fill(t, in + 1, N, d);
            memset(in + 1, 0, size - 1);
            in[size] = 0x80; /* the smallest integer */
            memcpy(out, in, sizeof in);
            dt_fold(&(struct dt_fold){ out + 1, same, 1, N, .divisor = divisors[d] }, t, DT_AVG);
            for (size_t i = 0; i < N; i++) {
                (dt_dtype_is_float(t) ? expect_real : expect_integer)(t, DT_SUM, src, 1, i,
                                                                      divisors[d], want);
                assert_memory_equal(out + 1 + i * size, want, size);
            }
        }
    }
}

/* All types except f64 are multiplied in f32, by the factor as an f32. */
static void expect_scaled(dt_dtype_t t, const void *in, double factor, void *want)
{
    double v = load_float(t, in);

    store_float(t, want, t == DT_F64 ? v * factor : (double)(float)(v * (double)(float)factor));
}

static void check_scale_by(dt_dtype_t t, size_t count, double factor, bool in_place)
{
    enum { ROOMY = 2 + 210 * 8 };
    static uint8_t in[ROOMY], out[ROOMY], want[210 * 8];
    size_t size = dt_dtype_size(t), bytes = count * size;
    uint8_t *to = in_place ? in + 1 : out + 2;

    fill(t, in + 1, count, count);
    for (size_t i = 0; i < count; i++)
        expect_scaled(t, in + 1 + i * size, factor, want + i * size);
    to[-1] = to[bytes] = 0xa5;
    dt_scale(to, in + 1, count, t, factor);
    assert_memory_equal(to, want, bytes);
    assert_true(to[-1] == 0xa5 && to[bytes] == 0xa5);
}

static void check_scale(void)
{
    static const double factors[] = { 0.5, -0.1, 3, 1e-40, 0, -0.0, 1e30, INFINITY, NAN, 1.0 / 3 };

    for (dt_dtype_t t = DT_F16; t <= DT_F64; t++) {
        for (size_t f = 0; f < sizeof factors / sizeof *factors; f++) {
            for (size_t count = 0; count <= 200; count++)
                check_scale_by(t, count, factors[f], count % 2);
        }
    }
}

static void check_divide_and_scale(void)
{
    check_divide();
    check_scale();
}

static void quotients_and_products_are_rounded_once(void **state)
{
    (void)state;
    each_set(check_divide_and_scale);
}

static void types_and_instruction_sets_are_known_by_name(void **state)
{
    static const struct {
        const char *name;
        size_t size;
    } types[] = { { "i8", 1 },  { "u8", 1 },   { "i16", 2 }, { "u16", 2 },
                  { "i32", 4 }, { "u32", 4 },  { "i64", 8 }, { "u64", 8 },
                  { "f16", 2 }, { "bf16", 2 }, { "f32", 4 }, { "f64", 8 } };

    (void)state;
    for (int t = 0; t < DT_DTYPE_MAX; t++) {
        assert_string_equal(dt_dtype_name((dt_dtype_t)t), types[t].name);
        assert_int_equal(dt_dtype_size((dt_dtype_t)t), types[t].size);
        assert_int_equal(dt_dtype_is_float((dt_dtype_t)t), types[t].name[0] == 'f' || t == DT_BF16);
    }
    assert_int_equal(dt_dtype_size((dt_dtype_t)-1) + dt_dtype_size((dt_dtype_t)12), 0);
    assert_string_equal(dt_op_name(DT_ADASUM), "adasum");
    assert_string_equal(dt_op_name((dt_op_t)9), "?");
    assert_false(dt_op_applies(DT_BOR, DT_BF16) || dt_op_applies((dt_op_t)9, DT_I8));
    assert_false(dt_op_applies(DT_ADASUM, DT_F32));
    assert_false(dt_reduce_use("sse9") || dt_reduce_use("plain "));
    assert_true(dt_reduce_use("plain"));
    assert_true(dt_reduce_use(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKS("6, 11, 12, 13, 14, 15, 17", every_instruction_set_gives_the_same_results),
        cmocka_unit_test(every_half_survives_a_conversion),
        CHECKS("13, 14", halves_round_to_the_nearest_even),
        CHECKS("13, 14", eight_thirds_are_rounded_once),
        CHECKS("11, 12, 13, 15, 16, 17", single_values_are_as_the_manual_says),
        CHECKS("16", quotients_and_products_are_rounded_once),
        cmocka_unit_test(types_and_instruction_sets_are_known_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
