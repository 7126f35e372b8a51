#include "runtime/gpu/nvidia/cudafail.h"

#include "runtime/base/error.h"
#include "runtime/gpu/nvidia/cuda.h"

dt_result_t dt_cuda_fail(const char *name, const char *function, CUresult error)
{
    char text[DT_CUDA_TEXT];

    dt_cuda_await_exit(error);
    return dt_fail(dt_cuda_code(error), "%s: %s", name, dt_cuda_describe(function, error, text));
}

dt_result_t dt_cuda_check(const char *name)
{
    const struct dt_cuda *cuda = dt_cuda();

    if (!cuda)
        return dt_fail(DT_ERR_CUDA, "%s: the program has loaded no CUDA driver", name);
    if (cuda->lacks)
        return dt_fail(DT_ERR_CUDA, "%s: the CUDA driver lacks %s: CUDA 12 or newer is needed",
                       name, cuda->lacks);
    return DT_OK;
}
