#include "runtime/host/reduce.h"

#include <string.h>

/* The loops below are what this file is for: let gcc vectorise them whatever CFLAGS say. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#define VECTORISE _Pragma("GCC ivdep")
#else
#define VECTORISE
#endif

/* Users' buffers may lie anywhere. */
typedef float f32 __attribute__((aligned(1), may_alias));
typedef double f64 __attribute__((aligned(1), may_alias));
typedef int32_t i32 __attribute__((aligned(1), may_alias));
typedef int64_t i64 __attribute__((aligned(1), may_alias));
typedef uint32_t u32 __attribute__((aligned(1), may_alias));
typedef uint64_t u64 __attribute__((aligned(1), may_alias));

#define SUM(x, y)  ((x) + (y))
#define PROD(x, y) ((x) * (y))
#define MIN(x, y)  ((y) < (x) ? (y) : (x))
#define MAX(x, y)  ((y) > (x) ? (y) : (x))
/* A NaN in x gives way; one in y never compares. */
#define FMIN(x, y) ((((y) < (x)) | ((x) != (x))) ? (y) : (x))
#define FMAX(x, y) ((((y) > (x)) | ((x) != (x))) ? (y) : (x))

typedef void (*fold_f)(void *dst, const void *left, const void *right, size_t count);

/* dst may be left or right. Elements are independent, which is what ivdep promises. */
#define FOLD(name, type, op)                                                                       \
    static void name(void *dst, const void *left, const void *right, size_t count)                 \
    {                                                                                              \
        type *d = dst;                                                                             \
        const type *x = left;                                                                      \
        const type *y = right;                                                                     \
                                                                                                   \
        VECTORISE                                                                                  \
        for (size_t i = 0; i < count; i++)                                                         \
            d[i] = op(x[i], y[i]);                                                                 \
    }

FOLD(sum_f32, f32, SUM)
FOLD(sum_f64, f64, SUM)
FOLD(sum_int32, u32, SUM)
FOLD(sum_int64, u64, SUM)
FOLD(prod_f32, f32, PROD)
FOLD(prod_f64, f64, PROD)
FOLD(prod_int32, u32, PROD)
FOLD(prod_int64, u64, PROD)
FOLD(min_f32, f32, FMIN)
FOLD(min_f64, f64, FMIN)
FOLD(min_i32, i32, MIN)
FOLD(min_i64, i64, MIN)
FOLD(max_f32, f32, FMAX)
FOLD(max_f64, f64, FMAX)
FOLD(max_i32, i32, MAX)
FOLD(max_i64, i64, MAX)

enum { F32, F64, I32, I64, TYPES };

static const fold_f folds[][TYPES] = {
    [DT_SUM] = { sum_f32, sum_f64, sum_int32, sum_int64 },
    [DT_PROD] = { prod_f32, prod_f64, prod_int32, prod_int64 },
    [DT_MIN] = { min_f32, min_f64, min_i32, min_i64 },
    [DT_MAX] = { max_f32, max_f64, max_i32, max_i64 },
    [DT_AVG] = { sum_f32, sum_f64, sum_int32, sum_int64 },
};

static int column(dt_dtype_t dtype)
{
    switch (dtype) {
    case DT_F32:
        return F32;
    case DT_F64:
        return F64;
    case DT_I32:
        return I32;
    case DT_I64:
        return I64;
    }
    return -1;
}

size_t dt_dtype_size(dt_dtype_t dtype)
{
    static const size_t sizes[TYPES] = { 4, 8, 4, 8 };
    int c = column(dtype);

    return c < 0 ? 0 : sizes[c];
}

/* With more than two sources: block by block, so that what is folded stays in the first cache. */
void dt_reduce(void *dst, const void *const *src, size_t n, size_t count, dt_dtype_t dtype,
               dt_op_t op)
{
    enum { BLOCK = 512 };
    uint64_t acc[BLOCK];
    size_t size = dt_dtype_size(dtype);
    fold_f fold = folds[op][column(dtype)];

    if (n == 1) {
        memmove(dst, src[0], count * size);
        return;
    }
    for (size_t at = 0; at < count; at += BLOCK) {
        size_t m = count - at < BLOCK ? count - at : BLOCK;
        const void *left = (const char *)src[0] + at * size;

        for (size_t i = 1; i < n; i++) {
            void *to = i + 1 == n ? (void *)((char *)dst + at * size) : acc;

            fold(to, left, (const char *)src[i] + at * size, m);
            left = acc;
        }
    }
}

#define DIVIDE(type, divisor)                                                                      \
    do {                                                                                           \
        type *b = buf;                                                                             \
                                                                                                   \
        VECTORISE                                                                                  \
        for (size_t i = 0; i < count; i++)                                                         \
            b[i] = b[i] / (divisor);                                                               \
    } while (0)

void dt_divide(void *buf, size_t count, dt_dtype_t dtype, int n)
{
    switch (dtype) {
    case DT_F32:
        DIVIDE(f32, (float)n);
        break;
    case DT_F64:
        DIVIDE(f64, (double)n);
        break;
    case DT_I32:
        DIVIDE(i32, n);
        break;
    case DT_I64:
        DIVIDE(i64, n);
        break;
    }
}
