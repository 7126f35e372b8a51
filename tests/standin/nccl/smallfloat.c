#include "tests/standin/nccl/smallfloat.h"

#include <math.h>

const struct standin_format standin_half = { 10, 15, 0x7bff, 0x7c00, 0x7fff, 0x8000, false };
const struct standin_format standin_bfloat = { 7, 127, 0x7f7f, 0x7f80, 0x7fff, 0x8000, false };
const struct standin_format standin_e4m3 = { 3, 7, 0x7e, 0, 0x7f, 0x80, true };
const struct standin_format standin_e5m2 = { 2, 15, 0x7b, 0x7c, 0x7f, 0x80, true };

static double magnitude_of(const struct standin_format *format, unsigned bits)
{
    int exponent = (int)(bits >> format->mantissa_bits), mantissa_bits = format->mantissa_bits;
    unsigned hidden = 1u << mantissa_bits, mantissa = bits & (hidden - 1);

    if (exponent == 0)
        return ldexp(mantissa, 1 - format->bias - mantissa_bits);
    return ldexp(hidden + mantissa, exponent - format->bias - mantissa_bits);
}

double standin_decode(const struct standin_format *format, unsigned bits)
{
    unsigned magnitude = bits & ~format->sign;
    double value = magnitude_of(format, magnitude);

    if (magnitude > format->max)
        value = format->infinity && magnitude == format->infinity ? INFINITY : NAN;
    return bits & format->sign ? -value : value;
}

/* The bits of a magnitude, which may exceed the greatest number: bits have the order of the
 * numbers. */
static unsigned rounded(const struct standin_format *format, double magnitude)
{
    int exponent;

    if (magnitude == 0)
        return 0;
    frexp(magnitude, &exponent);
    exponent = exponent - 1 > 1 - format->bias ? exponent - 1 : 1 - format->bias;
    return ((unsigned)(exponent + format->bias - 1) << format->mantissa_bits) +
           (unsigned)nearbyint(ldexp(magnitude, format->mantissa_bits - exponent));
}

unsigned standin_encode(const struct standin_format *format, double value)
{
    unsigned sign = signbit(value) ? format->sign : 0;
    double greatest = magnitude_of(format, format->max);
    unsigned bits;

    if (isnan(value))
        return format->nan;
    bits = fabs(value) > 2 * greatest ? format->max + 1 : rounded(format, fabs(value));
    if (bits > format->max)
        bits = format->saturates ? format->max : format->infinity;
    return sign | bits;
}
