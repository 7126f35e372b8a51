#include "cmd/perf/ops.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* ---- elements ---- */

/* 1 to 4; a product of more than a few of them would leave small types: there all but every eighth
 * rank contribute 1. */
static int contribution(const struct dt_perf_args *a, size_t i, int rank)
{
    int v = 1 + (int)((i * 5 + (size_t)rank * 3) % 4);

    return a->op == DT_PROD ? (rank % 8 == 0 ? v : 1) : v;
}

/* v: a whole number from 0 to 256. */
static uint16_t small_half(dt_dtype_t dtype, int v)
{
    int bits = dtype == DT_F16 ? 10 : 7, bias = dtype == DT_F16 ? 15 : 127, e = 0;

    if (v == 0)
        return 0;
    while (v >> (e + 1))
        e++;
    return (uint16_t)(((e + bias) << bits) + ((v << bits >> e) - (1 << bits)));
}

static void put(dt_dtype_t dtype, void *p, int v)
{
    int64_t whole = v;
    float f = (float)v;
    double d = v;
    uint16_t h;

    if (dtype == DT_F32) {
        memcpy(p, &f, sizeof f);
    } else if (dtype == DT_F64) {
        memcpy(p, &d, sizeof d);
    } else if (dt_dtype_is_float(dtype)) {
        h = small_half(dtype, v);
        memcpy(p, &h, sizeof h);
    } else {
        memcpy(p, &whole, dt_dtype_size(dtype)); /* little-endian */
    }
}

static double get_half(dt_dtype_t dtype, uint16_t h)
{
    int bits = dtype == DT_F16 ? 10 : 7, bias = dtype == DT_F16 ? 15 : 127;
    int exponent = (h & 0x7fff) >> bits, mantissa = h & ((1 << bits) - 1);
    double v = exponent ? ldexp((1 << bits) + mantissa, exponent - bias - bits)
                        : ldexp(mantissa, 1 - bias - bits);

    return h & 0x8000 ? -v : v;
}

static double get(dt_dtype_t dtype, const void *p)
{
    int64_t whole = 0;
    uint16_t h;
    float f;
    double d;

    switch (dtype) {
    case DT_F32:
        memcpy(&f, p, sizeof f);
        return (double)f;
    case DT_F64:
        memcpy(&d, p, sizeof d);
        return d;
    case DT_F16:
    case DT_BF16:
        memcpy(&h, p, sizeof h);
        return get_half(dtype, h);
    default:
        memcpy(&whole, p, dt_dtype_size(dtype));
        return (double)whole;
    }
}

void dt_perf_fill(const struct dt_perf_args *a, void *buf, size_t count, int rank)
{
    for (size_t i = 0; i < count; i++)
        put(a->dtype, (char *)buf + i * dt_dtype_size(a->dtype), contribution(a, i, rank));
}

static int64_t fold(dt_op_t op, int64_t x, int64_t y)
{
    switch (op) {
    case DT_PROD:
        return x * y;
    case DT_MIN:
        return y < x ? y : x;
    case DT_MAX:
        return y > x ? y : x;
    case DT_BAND:
        return x & y;
    case DT_BOR:
        return x | y;
    case DT_BXOR:
        return x ^ y;
    default:
        return x + y;
    }
}

/* Integers wrap as their type does. */
static double wrapped(dt_dtype_t dtype, int64_t v)
{
    char p[8];

    if (dt_dtype_is_float(dtype))
        return (double)v;
    memcpy(p, &v, sizeof v);
    return get(dtype, p);
}

/* Half the distance between two numbers of a type, by their size: what one rounding may cost. */
static double rounding(dt_dtype_t dtype)
{
    switch (dtype) {
    case DT_F16:
        return 0x1p-11;
    case DT_BF16:
        return 0x1p-8;
    case DT_F32:
        return 0x1p-24;
    case DT_F64:
        return 0x1p-53;
    default:
        return 0;
    }
}

/* The inputs repeat with a period of 4, and so do the results. */
static void expect(const struct dt_perf_op *op, const struct dt_perf_args *a, int n, double want[4])
{
    for (size_t i = 0; i < 4; i++) {
        int64_t acc = contribution(a, i, op->reduces ? 0 : a->root);

        for (int rank = 1; op->reduces && rank < n; rank++)
            acc = fold(a->op, acc, contribution(a, i, rank));
        want[i] = wrapped(a->dtype, acc);
        if (op->reduces && a->op == DT_AVG)
            want[i] = dt_dtype_is_float(a->dtype) ? want[i] / n : trunc(want[i] / n);
    }
}

size_t dt_perf_wrong(const struct dt_perf_op *op, const struct dt_perf_args *a, const void *out,
                     size_t count, int n)
{
    double want[4], slack;
    size_t wrong = 0;

    expect(op, a, n, want);
    /* A sum of many ranks may not fit a half; an average is rounded. */
    slack = rounding(a->dtype) * (op->reduces ? n : 0);
    for (size_t i = 0; i < count; i++) {
        double got = get(a->dtype, (const char *)out + i * dt_dtype_size(a->dtype));

        wrong += !(fabs(got - want[i % 4]) <= slack * fabs(want[i % 4]));
    }
    return wrong;
}

/* ---- collectives ---- */

static double both_ways(int n)
{
    return 2.0 * (n - 1) / n;
}

static double one_way(int n)
{
    (void)n;
    return 1;
}

static double read_all_and_write_all(int n)
{
    return 2.0 * n;
}

static double read_one_and_write_the_others(int n)
{
    return n;
}

static dt_result_t all_reduce(const struct dt_perf_args *a, const void *in, void *out, size_t count)
{
    return dt_all_reduce(DT_WORLD, in, out, count, a->dtype, a->op);
}

/* Out of place, root first brings its input to where all others have their output. */
static dt_result_t broadcast(const struct dt_perf_args *a, const void *in, void *out, size_t count)
{
    if (in != out && dt_rank() == a->root)
        memcpy(out, in, count * dt_dtype_size(a->dtype));
    return dt_broadcast(DT_WORLD, out, count, a->dtype, a->root);
}

static const struct dt_perf_op ops[] = {
    { "all_reduce", true, both_ways, read_all_and_write_all, all_reduce },
    { "broadcast", false, one_way, read_one_and_write_the_others, broadcast },
};

const struct dt_perf_op *dt_perf_op_find(const char *name)
{
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (strcmp(name, ops[i].name) == 0)
            return &ops[i];
    }
    return NULL;
}
