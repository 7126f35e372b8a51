#include <arm_neon.h>
#include <stdint.h>

#include "runtime/kernels/kernels.h"

#define KERNELS         dti_kernels_neon
#define ISA             "neon"
#define WIDTH           16
#define F16_BY_HARDWARE 1

typedef uint16_t halves __attribute__((vector_size(8)));
typedef float floats __attribute__((vector_size(16)));

extern const struct dt_kernels dti_kernels_neon;

static bool usable(void)
{
    return true;
}

static inline floats widen_f16_w(halves h)
{
    return (floats)vcvt_f32_f16((float16x4_t)h);
}

static inline halves narrow_f16_w(floats v)
{
    return (halves)vcvt_f16_f32((float32x4_t)v);
}

#include "runtime/kernels/body.h"
