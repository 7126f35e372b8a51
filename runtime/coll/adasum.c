#include "runtime/coll/adasum.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "runtime/base/min.h"
#include "runtime/kernels/wireformat.h"

enum { BLOCK = 256 }; /* elements; small enough for the caches */

typedef double pair __attribute__((vector_size(16)));

/* Loops process whole blocks: the rest of the last block is zero. */
union block {
    double at[BLOCK];
    pair pairs[BLOCK / 2];
};

/* ---- types ---- */

static enum dt_wireformat format_of(dt_dtype_t dtype)
{
    return dtype == DT_F16 ? DT_FORMAT_F16 : DT_FORMAT_BF16;
}

static size_t count_from(const struct dt_adasum *a, size_t first)
{
    return dt_min(a->count - first, BLOCK);
}

/* Converts elements of vector i, from "first" on. */
static void widen(const struct dt_adasum *a, size_t i, size_t first, union block *b)
{
    size_t count = count_from(a, first), size = dt_dtype_size(a->dtype);
    const uint8_t *from = (const uint8_t *)a->vectors + (i * a->count + first) * size;
    float floats[BLOCK];

    if (a->dtype == DT_F64) {
        memcpy(b->at, from, count * size);
        memset(b->at + count, 0, (BLOCK - count) * size);
        return;
    }
    if (a->dtype == DT_F32)
        memcpy(floats, from, count * size);
    else
        dt_wireformat_unpack(format_of(a->dtype), floats, from, count, 0);
    memset(floats + count, 0, (BLOCK - count) * sizeof *floats);
    for (size_t k = 0; k < BLOCK; k++)
        b->at[k] = (double)floats[k];
}

static void make_one_nan(union block *b)
{
    for (size_t k = 0; k < BLOCK; k++)
        b->at[k] = b->at[k] == b->at[k] ? b->at[k] : (double)NAN;
}

/* Rounds to the neighbour with an odd last bit if v lies between two floats. A second rounding to a
 * half-precision type then gives the same result as rounding v directly (Boldo and Melquiond,
 * Emulation of a FMA and Correctly Rounded Sums, IEEE Transactions on Computers 57(4), 2008). */
static float round_to_odd(double v)
{
    float f = (float)v;
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    bits -= fabs((double)f) > fabs(v);
    bits |= (double)f != v;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static void narrow(uint8_t *to, const union block *b, size_t count, dt_dtype_t dtype)
{
    float floats[BLOCK];

    if (dtype == DT_F64) {
        memcpy(to, b->at, count * sizeof *b->at);
    } else if (dtype == DT_F32) {
        for (size_t k = 0; k < BLOCK; k++)
            floats[k] = (float)b->at[k];
        memcpy(to, floats, count * sizeof *floats);
    } else {
        for (size_t k = 0; k < BLOCK; k++)
            floats[k] = round_to_odd(b->at[k]);
        dt_wireformat_pack(format_of(dtype), to, floats, count, 0);
    }
}

/* ---- sums ---- */

/* Vectors that have been combined, or are to be combined. */
struct group {
    size_t from;
    size_t n;
};

/* Adds up the group's elements from "first" on, with weights. */
static void add_up(const struct dt_adasum *a, const double *weights, struct group g, size_t first,
                   union block *sum)
{
    union block next;

    widen(a, g.from, first, sum);
    for (size_t k = 0; k < BLOCK / 2; k++)
        sum->pairs[k] *= weights[g.from];
    for (size_t i = g.from + 1; i < g.from + g.n; i++) {
        widen(a, i, first, &next);
        for (size_t k = 0; k < BLOCK / 2; k++)
            sum->pairs[k] += weights[i] * next.pairs[k];
    }
}

void dt_adasum_combine(const struct dt_adasum *a, const double *weights, void *dst)
{
    size_t size = dt_dtype_size(a->dtype);
    union block sum;

    for (size_t first = 0; first < a->count; first += BLOCK) {
        add_up(a, weights, (struct group){ 0, a->n }, first, &sum);
        make_one_nan(&sum);
        narrow((uint8_t *)dst + first * size, &sum, count_from(a, first), a->dtype);
    }
}

/* ---- products ---- */

/* Several sums at once hide the latency of an addition. */
static double multiply(const union block *x, const union block *y)
{
    pair a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };

    for (size_t k = 0; k < BLOCK / 2; k += 4) {
        a += x->pairs[k] * y->pairs[k];
        b += x->pairs[k + 1] * y->pairs[k + 1];
        c += x->pairs[k + 2] * y->pairs[k + 2];
        d += x->pairs[k + 3] * y->pairs[k + 3];
    }
    a = (a + b) + (c + d);
    return a[0] + a[1];
}

void dt_adasum_multiply(const struct dt_adasum *a, const double *weights, size_t width,
                        struct dt_adasum_products *products)
{
    size_t pairs = a->n / 2 / width;
    union block x, y;

    memset(products, 0, pairs * sizeof *products);
    for (size_t first = 0; first < a->count; first += BLOCK) {
        for (size_t i = 0; i < pairs; i++) {
            add_up(a, weights, (struct group){ 2 * i * width, width }, first, &x);
            add_up(a, weights, (struct group){ (2 * i + 1) * width, width }, first, &y);
            products[i].aa += multiply(&x, &x);
            products[i].ab += multiply(&x, &y);
            products[i].bb += multiply(&y, &y);
        }
    }
}

/* ---- weights ---- */

static double factor(double square, double product)
{
    if (!isfinite(square))
        return (double)NAN;
    return square == 0 ? 1 : 1 - product / (2 * square);
}

static void multiply_by(double *weights, struct group g, double by)
{
    for (size_t i = g.from; i < g.from + g.n; i++)
        weights[i] *= by;
}

void dt_adasum_weigh(const struct dt_adasum_products *products, size_t n, size_t width,
                     double *weights)
{
    for (size_t i = 0; i < n / 2 / width; i++) {
        const struct dt_adasum_products *p = &products[i];

        multiply_by(weights, (struct group){ 2 * i * width, width }, factor(p->aa, p->ab));
        multiply_by(weights, (struct group){ (2 * i + 1) * width, width }, factor(p->bb, p->ab));
    }
}
