#include "cmd/perf/elements.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/kernels/dtype.h"

enum {
    MOST_SUMMED = 64, /* number of ranks that add anything: bf16 counts exactly up to 64 times 4 */
    MOST_MULTIPLIED = 4,
    PRIME = 127, /* data that are only moved are less than this */
};

/* ---- numbers ---- */

/* v is a whole number from 0 to 256. */
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
        memcpy(p, &whole, dt_dtype_size(dtype)); /* the machine is little-endian */
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

/* Returns a number up to which the type has every whole number. For wide types it is not the
 * largest such number. */
static int counts_up_to(dt_dtype_t dtype)
{
    switch (dtype) {
    case DT_I8:
    case DT_U8:
        return 127;
    case DT_BF16:
        return 256;
    case DT_F16:
        return 2048;
    case DT_I16:
    case DT_U16:
        return 32767;
    default:
        return 1 << 24;
    }
}

/* ---- inputs ---- */

/* The two ranks of a pair have numbers equally far above and below the average. All together stay
 * within what the type counts exactly. If there are too many ranks for that, all contribute 0. */
static int averaged(dt_dtype_t dtype, size_t i, int rank, int n)
{
    int most = counts_up_to(dtype) / n - 1, above = rank % 2 ? -1 : rank + 1 < n;
    size_t some = most >= 4 ? 4 : most >= 2 ? 2 : 1; /* divides the period of the results */

    if (most < 0)
        return 0;
    return 1 + (int)(i % some) + above;
}

/* The vectors of a pair of ranks point the same way, so Adasum averages them. Those of two pairs
 * have no position in common, so it adds these averages. The two vectors of every second pair are
 * equally long, those of the others are not, so that pairs have different results. */
static int weighed(size_t i, int rank, int n)
{
    int pairs = n > 1 ? n / 2 : 1, pair = rank / 2, v = 2 * (1 + (int)(i % 4));
    bool longer = rank % 2 && pair % 2 == 0;

    return (int)(i % (size_t)pairs) != pair ? 0 : longer ? 2 * v : v;
}

/* Returns what rank contributes to a reduction. */
static int contribution(const struct dt_perf_case *c, size_t i, int rank, int n)
{
    int v = 1 + (int)((i * 5 + (size_t)rank * 3) % 4);

    switch (c->op) {
    case DT_SUM:
        return n <= MOST_SUMMED || (i + (size_t)rank) % (size_t)n < MOST_SUMMED ? v : 0;
    case DT_PROD:
        return rank % 8 == 0 && rank / 8 < MOST_MULTIPLIED ? v : 1;
    case DT_AVG:
        return averaged(c->dtype, i, rank, n);
    case DT_ADASUM:
        return weighed(i, rank, n);
    default:
        return v;
    }
}

static int mark(size_t i, int rank)
{
    return (int)((i * 7 + i / PRIME * 3 + (size_t)rank * 31) % PRIME);
}

void dt_perf_fill(const struct dt_perf_op *op, const struct dt_perf_case *c, void *in,
                  size_t elements, int rank, int n)
{
    size_t size = dt_dtype_size(c->dtype);

    for (size_t i = 0; i < elements; i++)
        put(c->dtype, (char *)in + i * size,
            op->reduces ? contribution(c, i, rank, n) : mark(i, rank));
}

/* ---- results ---- */

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

/* Returns element i of the reduction over the ranks from 0 to last. */
static double folded(const struct dt_perf_case *c, size_t i, int last, int n)
{
    int64_t acc = contribution(c, i, 0, n);
    double v;

    for (int rank = 1; rank <= last; rank++)
        acc = fold(c->op, acc, contribution(c, i, rank, n));
    v = wrapped(c->dtype, acc);
    if (c->op == DT_ADASUM && n > 1)
        return v / 2;
    if (c->op != DT_AVG)
        return v;
    return dt_dtype_is_float(c->dtype) ? v / n : trunc(v / n);
}

struct comparison {
    dt_dtype_t dtype;
    const char *got;
    size_t from; /* index of the first element in its input */
    size_t count;
};

static size_t compare_moved(const struct comparison *c, int rank)
{
    size_t size = dt_dtype_size(c->dtype), wrong = 0;

    for (size_t k = 0; k < c->count; k++)
        wrong += get(c->dtype, c->got + k * size) != mark(c->from + k, rank);
    return wrong;
}

/* The inputs, and so the results, repeat: with period 4 if all ranks contribute to a sum. */
static size_t compare_folded(const struct comparison *c, const double *want, size_t period)
{
    size_t size = dt_dtype_size(c->dtype), wrong = 0;

    for (size_t k = 0; k < c->count; k++) {
        /* written like this, a NaN counts as wrong */
        wrong += !(get(c->dtype, c->got + k * size) == want[(c->from + k) % period]);
    }
    return wrong;
}

/* Returns the number of elements of rank's input before a block. */
static size_t before(const struct dt_perf_op *op, int rank, int block, int n, size_t count)
{
    size_t elements = 0;

    for (int i = 0; i < block; i++)
        elements += dt_perf_block_count(op, rank, i, n, count);
    return elements;
}

size_t dt_perf_wrong(const struct dt_perf_op *op, const struct dt_perf_case *c, const void *result,
                     size_t count, int me, int n)
{
    size_t period = 4 * (size_t)n, wrong = 0;
    const char *got = result;
    double *want = op->reduces ? malloc(period * sizeof *want) : NULL;

    if (op->reduces && !want)
        return SIZE_MAX;
    for (size_t i = 0; op->reduces && i < period; i++)
        want[i] = folded(c, i, op->source(me, n, c->root, 0).rank, n);
    for (int block = 0; block < (op->many_out ? n : 1); block++) {
        struct dt_perf_source s = op->source(me, n, c->root, block);
        struct comparison x = { .dtype = c->dtype,
                                .got = got,
                                .from = before(op, s.rank, s.block, n, count),
                                .count = dt_perf_block_count(op, s.rank, me, n, count) };

        wrong += op->reduces ? compare_folded(&x, want, period) : compare_moved(&x, s.rank);
        got += x.count * dt_dtype_size(c->dtype);
    }
    free(want);
    return wrong;
}
