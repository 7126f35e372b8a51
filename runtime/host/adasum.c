#include "runtime/host/adasum.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "runtime/host/least.h"
#include "runtime/host/wireformat.h"

enum {
    BLOCK = 256, /* elements, in the caches for all that they are multiplied by */
    ROWS = 8,    /* vectors that are multiplied by another one at a time */
};

typedef double pair __attribute__((vector_size(16)));

union block {
    double at[BLOCK];
    pair pairs[BLOCK / 2];
};

/* ---- types ---- */

static enum dt_wireformat format_of(dt_dtype_t dtype)
{
    return dtype == DT_F16 ? DT_FORMAT_F16 : DT_FORMAT_BF16;
}

/* Elements from "first" on of vector i, and zeros behind the last. Returns how many there are. */
static size_t widen(const struct dt_adasum *a, size_t i, size_t first, union block *b)
{
    size_t count = dt_least(a->count - first, BLOCK);
    const uint8_t *from =
        (const uint8_t *)a->vectors + (i * a->count + first) * dt_dtype_size(a->dtype);
    float floats[BLOCK];

    if (a->dtype == DT_F64)
        memcpy(b->at, from, count * sizeof *b->at);
    else if (a->dtype == DT_F32)
        memcpy(floats, from, count * sizeof *floats);
    else
        dt_wireformat_unpack(format_of(a->dtype), floats, from, count, 0);
    for (size_t k = 0; k < count && a->dtype != DT_F64; k++)
        b->at[k] = (double)floats[k];
    memset(b->at + count, 0, (BLOCK - count) * sizeof *b->at);
    return count;
}

static double one_nan(double v)
{
    return isnan(v) ? (double)NAN : v;
}

/* To the neighbour with an odd last bit, if v lies between two: so that to round again, to the
 * fewer bits of a half, gives what to round v itself would (Boldo and Melquiond, Emulation of a FMA
 * and Correctly Rounded Sums, IEEE Transactions on Computers 57(4), 2008). */
static float round_to_odd(double v)
{
    float f = (float)v;
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    if (!isnan(v) && (double)f != v && bits % 2 == 0)
        bits += fabs((double)f) < fabs(v) ? 1 : -1U;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static void narrow(uint8_t *to, const double *from, size_t count, dt_dtype_t dtype)
{
    float floats[BLOCK];

    if (dtype == DT_F64) {
        memcpy(to, from, count * sizeof *from);
        return;
    }
    for (size_t k = 0; k < count; k++)
        floats[k] = dtype == DT_F32 ? (float)from[k] : round_to_odd(from[k]);
    if (dtype == DT_F32)
        memcpy(to, floats, count * sizeof *floats);
    else
        dt_wireformat_pack(format_of(dtype), to, floats, count, 0);
}

/* ---- products ---- */

/* Side by side, to hide the latency of an addition. */
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

/* By themselves, and by all that come before them. */
static void multiply_rows(const struct dt_adasum *a, size_t row, size_t first, double *products)
{
    size_t end = dt_least(row + ROWS, a->n);
    union block rows[ROWS], other;

    for (size_t i = row; i < end; i++)
        widen(a, i, first, &rows[i - row]);
    for (size_t j = 0; j < end; j++) {
        if (j < row)
            widen(a, j, first, &other);
        for (size_t i = j < row ? row : j; i < end; i++)
            products[dt_adasum_product(i, j)] +=
                multiply(&rows[i - row], j < row ? &other : &rows[j - row]);
    }
}

void dt_adasum_multiply(const struct dt_adasum *a, double *products)
{
    memset(products, 0, dt_adasum_products(a->n) * sizeof *products);
    for (size_t first = 0; first < a->count; first += BLOCK) {
        for (size_t row = 0; row < a->n; row += ROWS)
            multiply_rows(a, row, first, products);
    }
}

/* ---- weights ---- */

/* What has come of the vectors from "from" on. */
struct group {
    size_t from;
    size_t n;
};

static double product_of(const double *products, const double *weights, struct group a,
                         struct group b)
{
    double sum = 0;

    for (size_t i = a.from; i < a.from + a.n; i++) {
        for (size_t j = b.from; j < b.from + b.n; j++) {
            size_t at = i > j ? dt_adasum_product(i, j) : dt_adasum_product(j, i);

            sum += weights[i] * weights[j] * products[at];
        }
    }
    return sum;
}

/* Where combined vectors cancel each other, rounding may leave a square below 0. */
static double factor(double square, double product)
{
    if (!isfinite(square))
        return (double)NAN;
    return square <= 0 ? 1 : 1 - product / (2 * square);
}

static void multiply_by(double *weights, struct group g, double by)
{
    for (size_t i = g.from; i < g.from + g.n; i++)
        weights[i] *= by;
}

static void combine_two(const double *products, double *weights, struct group a, struct group b)
{
    double aa = product_of(products, weights, a, a);
    double ab = product_of(products, weights, a, b);
    double bb = product_of(products, weights, b, b);

    multiply_by(weights, a, factor(aa, ab));
    multiply_by(weights, b, factor(bb, ab));
}

void dt_adasum_weigh(const double *products, size_t n, double *weights)
{
    for (size_t i = 0; i < n; i++)
        weights[i] = 1;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t i = 0; i < n; i += 2 * width)
            combine_two(products, weights, (struct group){ i, width },
                        (struct group){ i + width, width });
    }
}

/* ---- the sum ---- */

void dt_adasum_combine(const struct dt_adasum *a, const double *weights, void *dst)
{
    size_t size = dt_dtype_size(a->dtype);

    for (size_t first = 0; first < a->count; first += BLOCK) {
        union block sum, next;
        size_t count = widen(a, 0, first, &sum);

        for (size_t k = 0; k < count; k++)
            sum.at[k] *= weights[0];
        for (size_t i = 1; i < a->n; i++) {
            widen(a, i, first, &next);
            for (size_t k = 0; k < count; k++)
                sum.at[k] += weights[i] * next.at[k];
        }
        for (size_t k = 0; k < count; k++)
            sum.at[k] = one_nan(sum.at[k]);
        narrow((uint8_t *)dst + first * size, sum.at, count, a->dtype);
    }
}
