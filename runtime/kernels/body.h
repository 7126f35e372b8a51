/* The kernels, included by one file for each instruction set, which defines
 *   KERNELS  the name of the table,
 *   ISA      its name in DTRUN_ISA; usable() tells whether this processor has it,
 *   WIDTH    the bytes of a vector,
 * STORE_PAST(p, v), if it can store a vector at a multiple of WIDTH past the caches, and, if it has
 * instructions for f16, widen_f16_w() and narrow_f16_w() with F16_BY_HARDWARE.
 *
 * The vectors are those of gcc and clang (vector_size), so each loop is written once. The rest of a
 * buffer is processed with narrower vectors, then element by element. The operations are the same,
 * so the bytes of a result do not depend on an element's position. */
#include <stdint.h>
#include <string.h>

#include "runtime/kernels/kernels.h"

/* A sanitizer adds its checks to every copy of a loop's body, which takes long to compile. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#pragma GCC optimize("O3")
#define UNROLL _Pragma("GCC unroll 4")
#else
#define UNROLL
#endif

#define INLINE    static inline __attribute__((always_inline))
#define VEC(t, n) t __attribute__((vector_size(sizeof(t) * (n))))

/* Vectors that are reduced at once, to hide the latency of an addition. */
enum { UNROLLED = 4 };

/* ---- operations, on vectors of any type and length ---- */

#define SELECT(mask, a, b)                                                                         \
    ((__typeof__(a))(((mask) & (__typeof__(mask))(a)) | (~(mask) & (__typeof__(mask))(b))))

#define SUM(a, b)  ((a) + (b))
#define PROD(a, b) ((a) * (b))
#define MIN(a, b)  SELECT((b) < (a), b, a)
#define MAX(a, b)  SELECT((b) > (a), b, a)
/* A NaN in a yields b; a NaN in b never compares. */
#define FMIN(a, b) SELECT(((b) < (a)) | ((a) != (a)), b, a)
#define FMAX(a, b) SELECT(((b) > (a)) | ((a) != (a)), b, a)
#define BAND(a, b) ((a) & (b))
#define BOR(a, b)  ((a) | (b))
#define BXOR(a, b) ((a) ^ (b))

/* Which NaN an addition yields depends on the processor and on the order of operands. */
#define ONE_NAN(v) SELECT((v) == (v), v, (__typeof__(v)){ 0 } + __builtin_nanf(""))

/* ---- types: how elements come into accumulators and leave them ---- */

/* t: name of the type. sfx: _w for a vector of WIDTH bytes, _n for a narrow one, _1 for one element
 * in the first lane of a narrow vector that is otherwise 0. (gcc keeps a vector of one element in
 * memory.) */
enum { NARROW = 16 }; /* bytes */

#define STEP_w(t) (sizeof(t##_w) / sizeof(((t##_w){ 0 })[0])) /* elements */
#define STEP_n(t) (sizeof(t##_n) / sizeof(((t##_n){ 0 })[0]))
#define STEP_1(t) 1

#define WHOLE(t, sfx)                                                                              \
    INLINE t##sfx load_##t##sfx(const void *p)                                                     \
    {                                                                                              \
        t##sfx v;                                                                                  \
                                                                                                   \
        memcpy(&v, p, sizeof(v));                                                                  \
        return v;                                                                                  \
    }                                                                                              \
    INLINE void store_##t##sfx(void *p, t##sfx v)                                                  \
    {                                                                                              \
        memcpy(p, &v, sizeof(v));                                                                  \
    }

#define FIRST(t, elem)                                                                             \
    INLINE t##_1 load_##t##_1(const void *p)                                                       \
    {                                                                                              \
        elem first;                                                                                \
                                                                                                   \
        memcpy(&first, p, sizeof(first));                                                          \
        return (t##_1){ first };                                                                   \
    }                                                                                              \
    INLINE void store_##t##_1(void *p, t##_1 v)                                                    \
    {                                                                                              \
        elem first = v[0];                                                                         \
                                                                                                   \
        memcpy(p, &first, sizeof(first));                                                          \
    }

/* per: the bytes for each element. */
#define VECTORS(t, elem, per)                                                                      \
    typedef VEC(elem, WIDTH / (per)) t##_w;                                                        \
    typedef VEC(elem, NARROW / (per)) t##_n, t##_1;                                                \
    WHOLE(t, _w)                                                                                   \
    WHOLE(t, _n)                                                                                   \
    FIRST(t, elem)

VECTORS(i8, int8_t, 1)
VECTORS(u8, uint8_t, 1)
VECTORS(i16, int16_t, 2)
VECTORS(u16, uint16_t, 2)
VECTORS(i32, int32_t, 4)
VECTORS(u32, uint32_t, 4)
VECTORS(i64, int64_t, 8)
VECTORS(u64, uint64_t, 8)
VECTORS(f32, float, 4)
VECTORS(f64, double, 8)
VECTORS(half, uint16_t, 4) /* for as many floats */

/* A half in the bits of a float. A normal number only needs another exponent. A subnormal number is
 * given the smallest normal exponent; it is then too large by exactly that normal number. */
#define WIDEN_F16(sfx)                                                                             \
    INLINE f32##sfx widen_f16##sfx(half##sfx h)                                                    \
    {                                                                                              \
        u32##sfx wide = __builtin_convertvector(h, u32##sfx);                                      \
        u32##sfx sign = (wide & 0x8000) << 16;                                                     \
        u32##sfx bits = (wide & 0x7fff) << 13;                                                     \
        u32##sfx least = (u32##sfx){ 0 } + (113u << 23);                                           \
        u32##sfx small = (u32##sfx)((f32##sfx)(bits + least) - (f32##sfx)least);                   \
        u32##sfx number = SELECT(bits < (1u << 23), small, bits + (112u << 23));                   \
        u32##sfx special = bits | 0x7f800000u;                                                     \
                                                                                                   \
        return (f32##sfx)(sign | SELECT(bits >= 0x0f800000u, special, number));                    \
    }

/* Nearest, ties to even. A number that becomes subnormal is rounded by adding a number whose last
 * bit has the weight of a subnormal half's last bit; others by adding just less than half of the
 * last bit kept. */
#define NARROW_F16(sfx)                                                                            \
    INLINE half##sfx narrow_f16##sfx(f32##sfx v)                                                   \
    {                                                                                              \
        u32##sfx all = (u32##sfx)v;                                                                \
        u32##sfx sign = (all >> 16) & 0x8000;                                                      \
        u32##sfx bits = all & 0x7fffffffu;                                                         \
        u32##sfx magic = (u32##sfx){ 0 } + (126u << 23);                                           \
        u32##sfx small = (u32##sfx)((f32##sfx)bits + (f32##sfx)magic) - magic;                     \
        u32##sfx number = (bits - (112u << 23) + 0xfff + ((bits >> 13) & 1)) >> 13;                \
        u32##sfx half = SELECT(bits < (113u << 23), small, number);                                \
                                                                                                   \
        half = SELECT(bits >= 0x47800000u, (u32##sfx){ 0 } + 0x7c00, half);                        \
        half = SELECT(bits > 0x7f800000u, (u32##sfx){ 0 } + 0x7e00, half);                         \
        return __builtin_convertvector(half | sign, half##sfx);                                    \
    }

WIDEN_F16(_n)
NARROW_F16(_n)
#ifndef F16_BY_HARDWARE
WIDEN_F16(_w)
NARROW_F16(_w)
#endif

/* bf16 is the upper half of a float. Overflow carries into infinity; the canonical NaN is
 * preserved. */
#define BF16(sfx)                                                                                  \
    INLINE f32##sfx widen_bf16##sfx(half##sfx b)                                                   \
    {                                                                                              \
        return (f32##sfx)(__builtin_convertvector(b, u32##sfx) << 16);                             \
    }                                                                                              \
    INLINE half##sfx narrow_bf16##sfx(f32##sfx v)                                                  \
    {                                                                                              \
        u32##sfx bits = (u32##sfx)v;                                                               \
                                                                                                   \
        return __builtin_convertvector((bits + 0x7fff + ((bits >> 16) & 1)) >> 16, half##sfx);     \
    }

BF16(_w)
BF16(_n)

/* as: a vector with the same number of lanes. */
#define HALF_TYPE(t, sfx, as)                                                                      \
    typedef f32##sfx t##sfx;                                                                       \
    INLINE t##sfx load_##t##sfx(const void *p)                                                     \
    {                                                                                              \
        return widen_##t##as(load_half##sfx(p));                                                   \
    }                                                                                              \
    INLINE void store_##t##sfx(void *p, t##sfx v)                                                  \
    {                                                                                              \
        store_half##sfx(p, narrow_##t##as(v));                                                     \
    }

HALF_TYPE(f16, _w, _w)
HALF_TYPE(f16, _n, _n)
HALF_TYPE(f16, _1, _n)
HALF_TYPE(bf16, _w, _w)
HALF_TYPE(bf16, _n, _n)
HALF_TYPE(bf16, _1, _n)

/* ---- folding ---- */

#define AT(base, i, size) ((const char *)(base) + (i) * (size))
#define TO(base, i, size) ((char *)(base) + (i) * (size))

/* dt_fold divides integers in a second pass: no processor divides vectors of integers. */
#define KEEP(v, fold)   (v)
#define FINISH(v, fold) ONE_NAN((fold)->divisor == 1 ? (v) : (v) / (float)(fold)->divisor)

/* Reduces from element i on, many vectors of one size at a time. Returns the index that it
 * reached. */
#define FOLD_BY(name, t, sfx, size, many, OP, END)                                                 \
    INLINE size_t name(const struct dt_fold *f, size_t i)                                          \
    {                                                                                              \
        enum { STEP = STEP##sfx(t) };                                                              \
                                                                                                   \
        for (; f->count - i >= (many)*STEP; i += (many)*STEP) {                                    \
            t##sfx acc[many];                                                                      \
                                                                                                   \
            UNROLL for (size_t k = 0; k < (many); k++) acc[k] =                                    \
                load_##t##sfx(AT(f->src[0], i + k * STEP, size));                                  \
            for (size_t s = 1; s < f->n; s++) {                                                    \
                const void *from = f->src[s];                                                      \
                                                                                                   \
                UNROLL for (size_t k = 0; k < (many); k++)                                         \
                {                                                                                  \
                    t##sfx next = load_##t##sfx(AT(from, i + k * STEP, size));                     \
                                                                                                   \
                    acc[k] = OP(acc[k], next);                                                     \
                }                                                                                  \
            }                                                                                      \
            UNROLL for (size_t k = 0; k < (many); k++) acc[k] = END(acc[k], f);                    \
            UNROLL for (size_t k = 0; k < (many); k++)                                             \
                store_##t##sfx(TO(f->dst, i + k * STEP, size), acc[k]);                            \
        }                                                                                          \
        return i;                                                                                  \
    }

#define FOLD(t, size, op, OP, END)                                                                 \
    FOLD_BY(op##_##t##_many, t, _w, size, UNROLLED, OP, END)                                       \
    FOLD_BY(op##_##t##_wide, t, _w, size, 1, OP, END)                                              \
    FOLD_BY(op##_##t##_narrow, t, _n, size, 1, OP, END)                                            \
    FOLD_BY(op##_##t##_last, t, _1, size, 1, OP, END)                                              \
    static void op##_##t(const struct dt_fold *f)                                                  \
    {                                                                                              \
        op##_##t##_last(f, op##_##t##_narrow(f, op##_##t##_wide(f, op##_##t##_many(f, 0))));       \
    }

#define INTEGER(i, u, size)                                                                        \
    FOLD(u, size, sum, SUM, KEEP)                                                                  \
    FOLD(u, size, prod, PROD, KEEP)                                                                \
    FOLD(i, size, min, MIN, KEEP)                                                                  \
    FOLD(u, size, min, MIN, KEEP)                                                                  \
    FOLD(i, size, max, MAX, KEEP)                                                                  \
    FOLD(u, size, max, MAX, KEEP)

#define FLOATING(t, size)                                                                          \
    FOLD(t, size, sum, SUM, FINISH)                                                                \
    FOLD(t, size, prod, PROD, FINISH)                                                              \
    FOLD(t, size, min, FMIN, FINISH)                                                               \
    FOLD(t, size, max, FMAX, FINISH)                                                               \
    INLINE size_t scale_##t##_wide(void *dst, const void *src, size_t count, double factor)        \
    {                                                                                              \
        enum { STEP = STEP_w(t) };                                                                 \
        size_t i = 0;                                                                              \
                                                                                                   \
        for (; count - i >= STEP; i += STEP)                                                       \
            SCALE(t##_w, store_##t##_w, load_##t##_w, size);                                       \
        return i;                                                                                  \
    }                                                                                              \
    static void scale_##t(void *dst, const void *src, size_t count, double factor)                 \
    {                                                                                              \
        for (size_t i = scale_##t##_wide(dst, src, count, factor); i < count; i++)                 \
            SCALE(t##_1, store_##t##_1, load_##t##_1, size);                                       \
    }

#define SCALE(vec, store, load, size)                                                              \
    do {                                                                                           \
        vec scaled_ = (load)(AT(src, i, size)) * (__typeof__(((vec){ 0 })[0]))factor;              \
                                                                                                   \
        (store)(TO(dst, i, size), ONE_NAN(scaled_));                                               \
    } while (0)

INTEGER(i8, u8, 1)
INTEGER(i16, u16, 2)
INTEGER(i32, u32, 4)
INTEGER(i64, u64, 8)
FOLD(u8, 1, band, BAND, KEEP)
FOLD(u8, 1, bor, BOR, KEEP)
FOLD(u8, 1, bxor, BXOR, KEEP)
FLOATING(f16, 2)
FLOATING(bf16, 2)
FLOATING(f32, 4)
FLOATING(f64, 8)

#include "runtime/kernels/packing.h"

/* ---- past the caches ---- */

/* A line stored by several instructions may reach memory in parts; by the widest store it does so
 * at once. */
static void copy_past(void *dst, const void *src, size_t bytes)
{
#if defined(STORE_PAST) && !defined(__SANITIZE_THREAD__)
    for (size_t i = 0; i < bytes; i += DT_CACHE_LINE) {
        UNROLL for (size_t k = 0; k < DT_CACHE_LINE; k += WIDTH)
            STORE_PAST(TO(dst, i + k, 1), load_u8_w(AT(src, i + k, 1)));
    }
#else
    memcpy(dst, src, bytes);
#endif
}

/* ---- the table ---- */

/* Sums and products do not depend on the sign. */
#define INTEGER_ROW(t, u)                                                                          \
    {                                                                                              \
        [DT_SUM] = sum_##u, [DT_PROD] = prod_##u, [DT_MIN] = min_##t, [DT_MAX] = max_##t,          \
        [DT_AVG] = sum_##u,                                                                        \
    }
#define FLOATING_ROW(t)                                                                            \
    {                                                                                              \
        [DT_SUM] = sum_##t, [DT_PROD] = prod_##t, [DT_MIN] = min_##t, [DT_MAX] = max_##t,          \
        [DT_AVG] = sum_##t,                                                                        \
    }

const struct dt_kernels KERNELS = {
    .name = ISA,
    .usable = usable,
    .fold = {
        [DT_I8] = INTEGER_ROW(i8, u8),
        [DT_U8] = INTEGER_ROW(u8, u8),
        [DT_I16] = INTEGER_ROW(i16, u16),
        [DT_U16] = INTEGER_ROW(u16, u16),
        [DT_I32] = INTEGER_ROW(i32, u32),
        [DT_U32] = INTEGER_ROW(u32, u32),
        [DT_I64] = INTEGER_ROW(i64, u64),
        [DT_U64] = INTEGER_ROW(u64, u64),
        [DT_F16] = FLOATING_ROW(f16),
        [DT_BF16] = FLOATING_ROW(bf16),
        [DT_F32] = FLOATING_ROW(f32),
        [DT_F64] = FLOATING_ROW(f64),
    },
    .fold_bits = {
        [DT_BAND] = band_u8,
        [DT_BOR] = bor_u8,
        [DT_BXOR] = bxor_u8,
    },
    .scale = {
        [DT_F16] = scale_f16,
        [DT_BF16] = scale_bf16,
        [DT_F32] = scale_f32,
        [DT_F64] = scale_f64,
    },
    .pack = {
        [DT_FORMAT_F16] = pack_f16,
        [DT_FORMAT_BF16] = pack_bf16,
        [DT_FORMAT_INT8] = pack_int8,
        [DT_FORMAT_COUNT2] = pack_count2,
        [DT_FORMAT_COUNT4] = pack_count4,
        [DT_FORMAT_COUNT8] = pack_count8,
    },
    .unpack = {
        [DT_FORMAT_F16] = unpack_f16,
        [DT_FORMAT_BF16] = unpack_bf16,
        [DT_FORMAT_INT8] = unpack_int8,
        [DT_FORMAT_COUNT2] = unpack_count2,
        [DT_FORMAT_COUNT4] = unpack_count4,
        [DT_FORMAT_COUNT8] = unpack_count8,
    },
    .keep_error = keep_error,
    .copy_past = copy_past,
};
