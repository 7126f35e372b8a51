/* What every processor of the architecture that this was compiled for has. */
#include "runtime/host/kernels/kernels.h"

#define KERNELS dti_kernels_plain
#define ISA     "plain"
#define WIDTH   16

extern const struct dt_kernels dti_kernels_plain;

static bool usable(void)
{
    return true;
}

#include "runtime/host/kernels/body.h"
