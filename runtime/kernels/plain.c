/* The kernels for every processor of the architecture that libdtrun is built for. */
#if defined(__x86_64__)
#include <emmintrin.h>
#define STORE_PAST(p, v) _mm_stream_si128((__m128i *)(p), (__m128i)(v))
#endif

#include "runtime/kernels/kernels.h"

#define KERNELS dti_kernels_plain
#define ISA     "plain"
#define WIDTH   16

extern const struct dt_kernels dti_kernels_plain;

static bool usable(void)
{
    return true;
}

#include "runtime/kernels/body.h"
