#include "runtime/gpu/nvidia/cudafail.h"

#include <stdio.h>

#include "runtime/base/error.h"
#include "runtime/gpu/nvidia/cuda.h"
#include "runtime/world/world.h"

dt_result_t dt_cuda_fail_as(dt_result_t result, const char *name, const char *what)
{
    const struct dt_world *w = dt_world_own();
    dt_error_info_t *e = dt_error_details();
    char me[DT_WORLD_NAME];

    dt_fail(result, "%s: %s: %s", dt_world_name(w, (uint32_t)w->rank, me), name, what);
    e->rank = w->rank;
    snprintf(e->host, sizeof e->host, "%s", w->host);
    snprintf(e->operation, sizeof e->operation, "%s", name);
    return result;
}

dt_result_t dt_cuda_fail(const char *name, const char *function, CUresult error)
{
    char text[DT_CUDA_TEXT];

    dt_cuda_await_exit(error);
    return dt_cuda_fail_as(dt_cuda_code(error), name, dt_cuda_describe(function, error, text));
}

dt_result_t dt_cuda_check(const char *name)
{
    const struct dt_cuda *cuda = dt_cuda();
    char what[DT_CUDA_TEXT];

    if (!cuda)
        return dt_cuda_fail_as(DT_ERR_CUDA, name,
                               "the program has not loaded the driver, libcuda.so.1");
    if (!cuda->lacks)
        return DT_OK;
    snprintf(what, sizeof what, "the driver lacks %s: update it to one of CUDA 12 or newer",
             cuda->lacks);
    return dt_cuda_fail_as(DT_ERR_CUDA, name, what);
}
