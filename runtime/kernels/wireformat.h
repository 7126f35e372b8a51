/* How f32 numbers look on their way between hosts where a call has asked for less than f32. Pure.
 *
 * f16, bf16: rounded to the nearest, ties to even. f16: the error is at most 2^-11 of the number,
 * or 2^-25; from 65520 on numbers become infinite. bf16: 2^-8, or 2^-134 (Kalamkar et al., A Study
 * of BFLOAT16 for Deep Learning Training, arXiv 1905.12322).
 *
 * int8: blocks of 256 numbers: a scale, which is 1/127 of the largest magnitude of the block and at
 * least 2^-126, then the nearest multiples of it. The error is at most half of the scale, but for
 * rounding in f32. A block with a NaN or an infinity arrives as NaN. (Alistarh et al., QSGD, NIPS
 * 2017, without its random rounding.)
 *
 * Counts: multiples of a step, in 2, 4 or 8 bits each: of at most 1, 7 and 127 steps. The least
 * number of so many bits stands for NaN. Numbers are told to 2 bits by a threshold, which is the
 * step: +1 from it on, -1 from its negative on, 0 between (MXNet's 2-bit gradient compression); a
 * NaN or an infinity is told as NaN. To 4 and 8 bits go sums of these, which are whole.
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

enum { DT_FORMAT_BLOCK = 256 }; /* what stands at a multiple of it is packed apart from the rest */

/* Of count packed numbers. */
size_t dt_wireformat_bytes(enum dt_wireformat f, size_t count);
/* step: of counts; others do not look at it. */
void dt_wireformat_pack(enum dt_wireformat f, void *dst, const void *src, size_t count, float step);
void dt_wireformat_unpack(enum dt_wireformat f, void *dst, const void *src, size_t count,
                          float step);

/* residual += (wanted - arrived) * weight, and 0 where that is no finite number. */
void dt_wireformat_keep_error(void *residual, const void *wanted, const void *arrived, size_t count,
                              float weight);

#endif
