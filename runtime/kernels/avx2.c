#include <cpuid.h>
#include <immintrin.h>
#include <stdint.h>

#include "runtime/kernels/kernels.h"

#define KERNELS          dti_kernels_avx2
#define ISA              "avx2"
#define WIDTH            32
#define F16_BY_HARDWARE  1
#define STORE_PAST(p, v) _mm256_stream_si256((__m256i *)(p), (__m256i)(v))

typedef uint16_t halves __attribute__((vector_size(16)));
typedef float floats __attribute__((vector_size(32)));

extern const struct dt_kernels dti_kernels_avx2;

static bool usable(void)
{
    unsigned a, b, c, d;

    return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static inline floats widen_f16_w(halves h)
{
    return (floats)_mm256_cvtph_ps((__m128i)h);
}

static inline halves narrow_f16_w(floats v)
{
    return (halves)_mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT);
}

#include "runtime/kernels/body.h"
