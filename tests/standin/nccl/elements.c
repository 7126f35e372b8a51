#include "tests/standin/nccl/elements.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "tests/standin/nccl/smallfloat.h"

size_t standin_element_size(ncclDataType_t type)
{
    static const unsigned char sizes[STANDIN_TYPES] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };

    return sizes[type];
}

/* Integers wrap around, so they are summed as unsigned numbers. */
#define INTEGERS(name, type, wrapping)                                                             \
    static type combine_##name(ncclRedOp_t op, type a, type b)                                     \
    {                                                                                              \
        if (op == ncclSum)                                                                         \
            return (type)((wrapping)a + (wrapping)b);                                              \
        if (op == ncclProd)                                                                        \
            return (type)((wrapping)a * (wrapping)b);                                              \
        return (op == ncclMax) == (a > b) ? a : b;                                                 \
    }

/* In Max and Min a number wins over NaN. */
#define FLOATS(name, type, max, min)                                                               \
    static type combine_##name(ncclRedOp_t op, type a, type b)                                     \
    {                                                                                              \
        if (op == ncclSum)                                                                         \
            return a + b;                                                                          \
        if (op == ncclProd)                                                                        \
            return a * b;                                                                          \
        return op == ncclMax ? max(a, b) : min(a, b);                                              \
    }

INTEGERS(int8, int8_t, uint8_t)
INTEGERS(uint8, uint8_t, uint8_t)
INTEGERS(int32, int32_t, uint32_t)
INTEGERS(uint32, uint32_t, uint32_t)
INTEGERS(int64, int64_t, uint64_t)
INTEGERS(uint64, uint64_t, uint64_t)
FLOATS(float, float, fmaxf, fminf)
FLOATS(double, double, fmax, fmin)

/* In double precision, sums and products of two 16-bit numbers are exact. Sums of bfloat16 numbers
 * far apart are rounded twice, with the same result as rounding once. */
static uint16_t combine_half(ncclRedOp_t op, uint16_t a, uint16_t b)
{
    double result =
        combine_double(op, standin_decode(&standin_half, a), standin_decode(&standin_half, b));

    return (uint16_t)standin_encode(&standin_half, result);
}

static uint16_t combine_bfloat(ncclRedOp_t op, uint16_t a, uint16_t b)
{
    double result =
        combine_double(op, standin_decode(&standin_bfloat, a), standin_decode(&standin_bfloat, b));

    return (uint16_t)standin_encode(&standin_bfloat, result);
}

static uint8_t combine_quarter(const struct standin_format *format, ncclRedOp_t op, uint8_t a,
                               uint8_t b)
{
    double result = combine_double(op, standin_decode(format, a), standin_decode(format, b));
    unsigned half = standin_encode(&standin_half, result);

    return (uint8_t)standin_encode(format, standin_decode(&standin_half, half));
}

static uint8_t combine_e4m3(ncclRedOp_t op, uint8_t a, uint8_t b)
{
    return combine_quarter(&standin_e4m3, op, a, b);
}

static uint8_t combine_e5m2(ncclRedOp_t op, uint8_t a, uint8_t b)
{
    return combine_quarter(&standin_e5m2, op, a, b);
}

/* The arrays may be unaligned: staged messages begin at any offset. */
#define FOLD(name, type)                                                                           \
    static void fold_##name(ncclRedOp_t op, char *sum, const char *in, size_t step, size_t count)  \
    {                                                                                              \
        type a, b;                                                                                 \
                                                                                                   \
        for (size_t i = 0; i < count; i++) {                                                       \
            memcpy(&a, sum + i * sizeof(type), sizeof(type));                                      \
            memcpy(&b, in + i * step * sizeof(type), sizeof(type));                                \
            a = combine_##name(op, a, b);                                                          \
            memcpy(sum + i * sizeof(type), &a, sizeof(type));                                      \
        }                                                                                          \
    }

FOLD(int8, int8_t)
FOLD(uint8, uint8_t)
FOLD(int32, int32_t)
FOLD(uint32, uint32_t)
FOLD(int64, int64_t)
FOLD(uint64, uint64_t)
FOLD(half, uint16_t)
FOLD(float, float)
FOLD(double, double)
FOLD(bfloat, uint16_t)
FOLD(e4m3, uint8_t)
FOLD(e5m2, uint8_t)

void standin_fold(ncclDataType_t type, ncclRedOp_t op, void *sum, const void *in, size_t step,
                  size_t count)
{
    static void (*const folds[STANDIN_TYPES])(ncclRedOp_t, char *, const char *, size_t, size_t) = {
        fold_int8, fold_uint8, fold_int32,  fold_uint32, fold_int64, fold_uint64,
        fold_half, fold_float, fold_double, fold_bfloat, fold_e4m3,  fold_e5m2,
    };

    folds[type](op, sum, in, step, count);
}

#define DIVIDE(type, divisor_type)                                                                 \
    for (size_t i = 0; i < count; i++) {                                                           \
        type value;                                                                                \
                                                                                                   \
        memcpy(&value, at + i * sizeof(type), sizeof(type));                                       \
        value = (type)(value / (divisor_type)divisor);                                             \
        memcpy(at + i * sizeof(type), &value, sizeof(type));                                       \
    }                                                                                              \
    return

void standin_divide(ncclDataType_t type, void *values, size_t count, int divisor)
{
    char *at = values;

    switch (type) {
    case ncclInt8:
        DIVIDE(int8_t, int);
    case ncclUint8:
        DIVIDE(uint8_t, unsigned);
    case ncclInt32:
        DIVIDE(int32_t, int);
    case ncclUint32:
        DIVIDE(uint32_t, unsigned);
    case ncclInt64:
        DIVIDE(int64_t, int);
    case ncclUint64:
        DIVIDE(uint64_t, unsigned);
    default:
        return;
    }
}

static const struct standin_format *format_of(ncclDataType_t type)
{
    switch (type) {
    case ncclFloat16:
        return &standin_half;
    case ncclBfloat16:
        return &standin_bfloat;
    case ncclFloat8e4m3:
        return &standin_e4m3;
    case ncclFloat8e5m2:
        return &standin_e5m2;
    default:
        return NULL;
    }
}

bool standin_reciprocal(ncclDataType_t type, int divisor, void *element)
{
    const struct standin_format *format = format_of(type);
    double value = 1.0 / divisor;
    float single = (float)value;
    unsigned bits;

    if (format) {
        bits = standin_encode(format, single);
        memcpy(element, &bits, standin_element_size(type)); /* little-endian */
    } else if (type == ncclFloat32) {
        memcpy(element, &single, sizeof(single));
    } else if (type == ncclFloat64) {
        memcpy(element, &value, sizeof(value));
    } else {
        return false;
    }
    return true;
}
