/* The wire formats: how f32 numbers travel between hosts if a call asks for fewer bits. Pure.
 *
 * f16, bf16: rounded to nearest, ties to even. The relative error is at most 2^-11 for f16
 * (absolute: 2^-25 for small numbers; numbers from 65520 on become infinite), and 2^-8 for bf16
 * (2^-134; Kalamkar et al., A Study of BFLOAT16 for Deep Learning Training, arXiv 1905.12322).
 *
 * int8: blocks of 256 numbers. Each has a scale, 1/127 of the largest magnitude and at least
 * 2^-126, and the nearest multiples of it. The error is at most half of the scale, apart from
 * rounding in f32. A block with a NaN or an infinity arrives as NaN. (Alistarh et al., QSGD, NIPS
 * 2017, without its random rounding.)
 *
 * Counts: multiples of a step in 2, 4 or 8 bits, of at most 1, 7 and 127 steps. The lowest number
 * that fits stands for NaN. Numbers become 2-bit counts by a threshold, which is the step: +1 from
 * the threshold on, -1 from its negative on, 0 in between (MXNet's 2-bit gradient compression). NaN
 * and infinity become NaN. The counts of 4 and 8 bits hold sums of these, which are integers.
 *
 * Every instruction set gives the same bytes. Pointers need no alignment. */
#ifndef DT_KERNELS_WIREFORMAT_H
#define DT_KERNELS_WIREFORMAT_H

#include <stddef.h>

enum dt_wireformat {
    DT_FORMAT_F16,
    DT_FORMAT_BF16,
    DT_FORMAT_INT8,
    DT_FORMAT_COUNT2,
    DT_FORMAT_COUNT4,
    DT_FORMAT_COUNT8,
    DT_FORMATS
};

enum { DT_FORMAT_BLOCK = 256 }; /* Each block from a multiple of this is packed independently. */

/* The size of count packed numbers. */
size_t dt_wireformat_bytes(enum dt_wireformat f, size_t count);
/* step: of counts; ignored by other formats. */
void dt_wireformat_pack(enum dt_wireformat f, void *dst, const void *src, size_t count, float step);
void dt_wireformat_unpack(enum dt_wireformat f, void *dst, const void *src, size_t count,
                          float step);

/* residual += (wanted - arrived) * weight; 0 if that is not finite. */
void dt_wireformat_keep_error(void *residual, const void *wanted, const void *arrived, size_t count,
                              float weight);

#endif
