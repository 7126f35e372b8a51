#include <immintrin.h>
#include <stdint.h>

#include "runtime/kernels/kernels.h"

#define KERNELS          dti_kernels_avx512
#define ISA              "avx512"
#define WIDTH            64
#define F16_BY_HARDWARE  1
#define STORE_PAST(p, v) _mm512_stream_si512((__m512i *)(p), (__m512i)(v))

typedef uint16_t halves __attribute__((vector_size(32)));
typedef float floats __attribute__((vector_size(64)));

extern const struct dt_kernels dti_kernels_avx512;

static bool usable(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

static inline floats widen_f16_w(halves h)
{
    return (floats)_mm512_cvtph_ps((__m256i)h);
}

static inline halves narrow_f16_w(floats v)
{
    return (halves)_mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT);
}

#include "runtime/kernels/body.h"
