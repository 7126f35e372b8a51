#include "tests/unit/weighed.h"

#include <string.h>

#include "runtime/kernels/dtype.h"
#include "runtime/kernels/wireformat.h"

/* ---- elements ---- */

static enum dt_wireformat format_of(dt_dtype_t t)
{
    return t == DT_F16 ? DT_FORMAT_F16 : DT_FORMAT_BF16;
}

void weighed_put(void *buf, size_t i, dt_dtype_t t, double v)
{
    size_t size = dt_dtype_size(t);
    float f = (float)v;

    if (t == DT_F64)
        memcpy((char *)buf + i * size, &v, size);
    else if (t == DT_F32)
        memcpy((char *)buf + i * size, &f, size);
    else
        dt_wireformat_pack(format_of(t), (char *)buf + i * size, &f, 1, 0);
}

double weighed_get(const void *buf, size_t i, dt_dtype_t t)
{
    size_t size = dt_dtype_size(t);
    double d;
    float f;

    if (t == DT_F64) {
        memcpy(&d, (const char *)buf + i * size, size);
        return d;
    }
    if (t == DT_F32)
        memcpy(&f, (const char *)buf + i * size, size);
    else
        dt_wireformat_unpack(format_of(t), &f, (const char *)buf + i * size, 1, 0);
    return (double)f;
}

/* ---- the definition ---- */

static long double product(const long double *a, const long double *b, size_t count)
{
    long double p = 0;

    for (size_t i = 0; i < count; i++)
        p += a[i] * b[i];
    return p;
}

static void combine(long double *a, const long double *b, size_t count)
{
    long double ab = product(a, b, count), aa = product(a, a, count), bb = product(b, b, count);
    long double of_a = aa == 0 ? 1 : 1 - ab / (2 * aa), of_b = bb == 0 ? 1 : 1 - ab / (2 * bb);

    for (size_t i = 0; i < count; i++)
        a[i] = of_a * a[i] + of_b * b[i];
}

void weighed_combine(long double *const *v, size_t n, size_t count)
{
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t i = 0; i < n; i += 2 * width)
            combine(v[i], v[i + width], count);
    }
}
