/* The arithmetic of struct dt_gpu_fold, which nvcc compiles for GPUs (fold.cu) and C compilers for
 * the tests. Neither may contract a product and a sum into one rounding. */
#ifndef DT_GPU_FOLD_FOLD_KERNEL_H
#define DT_GPU_FOLD_FOLD_KERNEL_H

#include <stdint.h>
#include <string.h>

#include "runtime/dtrun.h"
#include "runtime/gpu/fold/fold.h"

#ifdef __CUDACC__
#define FOLD_INLINE static __device__ __forceinline__
#else
#define FOLD_INLINE static inline
#endif

/* ---- types ---- */

FOLD_INLINE uint32_t bits_of(float v)
{
    uint32_t bits;

    memcpy(&bits, &v, sizeof bits);
    return bits;
}

FOLD_INLINE float float_of(uint32_t bits)
{
    float v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

FOLD_INLINE double double_of(uint64_t bits)
{
    double v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

/* A subnormal half is read with the smallest normal exponent, so it is too large by that normal
 * number. */
FOLD_INLINE float widen_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, bits = (uint32_t)(h & 0x7fff) << 13;
    uint32_t least = 113u << 23;

    if (bits >= 0x0f800000u)
        return float_of(sign | bits | 0x7f800000u);
    if (bits >= 1u << 23)
        return float_of(sign | (bits + (112u << 23)));
    return float_of(sign | bits_of(float_of(bits + least) - float_of(least)));
}

/* Rounds to nearest, ties to even. To round a result that becomes subnormal, adds a number whose
 * last bit has the weight of a subnormal half's last bit. */
FOLD_INLINE uint16_t narrow_f16(float v)
{
    uint32_t sign = bits_of(v) >> 16 & 0x8000, bits = bits_of(v) & 0x7fffffffu;
    uint32_t magic = 126u << 23, half;

    if (bits > 0x7f800000u)
        half = 0x7e00;
    else if (bits >= 0x47800000u)
        half = 0x7c00;
    else if (bits < 113u << 23)
        half = bits_of(float_of(bits) + float_of(magic)) - magic;
    else
        half = (bits - (112u << 23) + 0xfff + (bits >> 13 & 1)) >> 13;
    return (uint16_t)(sign | half);
}

FOLD_INLINE float widen_bf16(uint16_t b)
{
    return float_of((uint32_t)b << 16);
}

/* For any number, and for the one NaN that results can have. */
FOLD_INLINE uint16_t narrow_bf16(float v)
{
    uint32_t bits = bits_of(v);

    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#define AS_IT_IS(v) (v)
#define NAN_float   float_of(0x7fc00000u)
#define NAN_double  double_of(0x7ff8000000000000u)

/* ---- folding one element ---- */

#define AT(t, base, i) (((t *)(uintptr_t)(base))[i])

/* t: the stored type; wide: the accumulator's. Both may wrap, so sums use unsigned arithmetic. */
#define FOLD_INTEGER(name, t, wide)                                                                \
    FOLD_INLINE void fold_##name(const struct dt_gpu_fold *f, uint64_t i)                          \
    {                                                                                              \
        wide acc = AT(const t, f->src, i);                                                         \
                                                                                                   \
        for (uint32_t s = 1; s < f->n; s++) {                                                      \
            wide next = AT(const t, f->src + s * f->stride, i);                                    \
                                                                                                   \
            acc = integer_op_##wide(f->op, acc, next);                                             \
        }                                                                                          \
        if (f->divisor != 1)                                                                       \
            acc = (t)acc / (wide)f->divisor;                                                       \
        AT(t, f->dst, i) = (t)acc;                                                                 \
    }

#define INTEGER_OP(wide)                                                                           \
    FOLD_INLINE wide integer_op_##wide(uint32_t op, wide a, wide b)                                \
    {                                                                                              \
        switch (op) {                                                                              \
        case DT_PROD:                                                                              \
            return (wide)((uint64_t)a * (uint64_t)b);                                              \
        case DT_MIN:                                                                               \
            return b < a ? b : a;                                                                  \
        case DT_MAX:                                                                               \
            return b > a ? b : a;                                                                  \
        case DT_BAND:                                                                              \
            return a & b;                                                                          \
        case DT_BOR:                                                                               \
            return a | b;                                                                          \
        case DT_BXOR:                                                                              \
            return a ^ b;                                                                          \
        default:                                                                                   \
            return (wide)((uint64_t)a + (uint64_t)b);                                              \
        }                                                                                          \
    }

/* A NaN in a loses. A NaN in b never compares as less or greater. */
#define FLOAT_OP(wide)                                                                             \
    FOLD_INLINE wide float_op_##wide(uint32_t op, wide a, wide b)                                  \
    {                                                                                              \
        switch (op) {                                                                              \
        case DT_PROD:                                                                              \
            return a * b;                                                                          \
        case DT_MIN:                                                                               \
            return b < a || a != a ? b : a;                                                        \
        case DT_MAX:                                                                               \
            return b > a || a != a ? b : a;                                                        \
        default:                                                                                   \
            return a + b;                                                                          \
        }                                                                                          \
    }                                                                                              \
    FOLD_INLINE wide one_nan_##wide(wide v)                                                        \
    {                                                                                              \
        return v == v ? v : NAN_##wide;                                                            \
    }

INTEGER_OP(int64_t)
INTEGER_OP(uint64_t)
FLOAT_OP(float)
FLOAT_OP(double)

#define FOLD_FLOAT(name, t, wide, WIDEN, NARROW)                                                   \
    FOLD_INLINE t scale_##name(t v, double factor)                                                 \
    {                                                                                              \
        return NARROW(one_nan_##wide(WIDEN(v) * (wide)factor));                                    \
    }                                                                                              \
    FOLD_INLINE wide load_##name(const struct dt_gpu_fold *f, uint32_t s, uint64_t i)              \
    {                                                                                              \
        t v = AT(const t, f->src + s * f->stride, i);                                              \
                                                                                                   \
        return WIDEN(f->prescale == 1 ? v : scale_##name(v, f->prescale));                         \
    }                                                                                              \
    FOLD_INLINE void fold_##name(const struct dt_gpu_fold *f, uint64_t i)                          \
    {                                                                                              \
        wide acc = load_##name(f, 0, i);                                                           \
        t v;                                                                                       \
                                                                                                   \
        for (uint32_t s = 1; s < f->n; s++)                                                        \
            acc = float_op_##wide(f->op, acc, load_##name(f, s, i));                               \
        if (f->divisor != 1)                                                                       \
            acc = acc / (wide)f->divisor;                                                          \
        v = NARROW(one_nan_##wide(acc));                                                           \
        AT(t, f->dst, i) = f->postscale == 1 ? v : scale_##name(v, f->postscale);                  \
    }

FOLD_INTEGER(i8, int8_t, int64_t)
FOLD_INTEGER(u8, uint8_t, uint64_t)
FOLD_INTEGER(i16, int16_t, int64_t)
FOLD_INTEGER(u16, uint16_t, uint64_t)
FOLD_INTEGER(i32, int32_t, int64_t)
FOLD_INTEGER(u32, uint32_t, uint64_t)
FOLD_INTEGER(i64, int64_t, int64_t)
FOLD_INTEGER(u64, uint64_t, uint64_t)
FOLD_FLOAT(f16, uint16_t, float, widen_f16, narrow_f16)
FOLD_FLOAT(bf16, uint16_t, float, widen_bf16, narrow_bf16)
FOLD_FLOAT(f32, float, float, AS_IT_IS, AS_IT_IS)
FOLD_FLOAT(f64, double, double, AS_IT_IS, AS_IT_IS)

/* ---- folding all ---- */

#define FOLD_CASE(type, name)                                                                      \
    case type:                                                                                     \
        for (uint64_t i = from; i < f->count; i += step)                                           \
            fold_##name(f, i);                                                                     \
        return;

/* Folds every step-th element, beginning with `from`. */
FOLD_INLINE void dt_gpu_fold_some(const struct dt_gpu_fold *f, uint64_t from, uint64_t step)
{
    switch (f->dtype) {
        FOLD_CASE(DT_I8, i8)
        FOLD_CASE(DT_U8, u8)
        FOLD_CASE(DT_I16, i16)
        FOLD_CASE(DT_U16, u16)
        FOLD_CASE(DT_I32, i32)
        FOLD_CASE(DT_U32, u32)
        FOLD_CASE(DT_I64, i64)
        FOLD_CASE(DT_U64, u64)
        FOLD_CASE(DT_F16, f16)
        FOLD_CASE(DT_BF16, bf16)
        FOLD_CASE(DT_F32, f32)
        FOLD_CASE(DT_F64, f64)
    default:
        return;
    }
}

#endif
