/* Floating-point formats that C has no type for. */
#ifndef TESTS_STANDIN_NCCL_SMALLFLOAT_H
#define TESTS_STANDIN_NCCL_SMALLFLOAT_H

#include <stdbool.h>

struct standin_format {
    int mantissa_bits, bias;
    unsigned max, infinity, nan; /* bits of the greatest number, infinity and NaN; no infinity: 0 */
    unsigned sign;
    bool saturates; /* numbers beyond max, and infinities, become max */
};

extern const struct standin_format standin_half, standin_bfloat, standin_e4m3, standin_e5m2;

double standin_decode(const struct standin_format *format, unsigned bits);
/* Rounds to nearest, ties to even. */
unsigned standin_encode(const struct standin_format *format, double value);

#endif
