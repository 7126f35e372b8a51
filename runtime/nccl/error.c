#include "runtime/nccl/error.h"

#include <stdarg.h>
#include <stdio.h>

dt_result_t dt_nccl_fail(const struct dt_device_host *host, dt_result_t result, const char *format,
                         ...)
{
    char text[512];
    int used = snprintf(text, sizeof text, "rank %d: ", host->rank);
    va_list args;

    va_start(args, format);
    vsnprintf(text + used, sizeof text - (size_t)used, format, args);
    va_end(args);
    return host->fail(host->ctx, result, text);
}

dt_result_t dt_nccl_cuda_error(const struct dt_device_host *host, const char *call,
                               cudaError_t error)
{
    return dt_nccl_fail(host, DT_ERR_CUDA, "%s failed: %s (%s)", call, cudaGetErrorString(error),
                        cudaGetErrorName(error));
}

dt_result_t dt_nccl_error(const struct dt_device_host *host, const char *call, ncclResult_t error,
                          ncclComm_t comm)
{
    const char *last = comm ? ncclGetLastError(comm) : NULL;
    /* NCCL's own words for it: "a network error or a remote process exiting prematurely". */
    dt_result_t result = error == ncclRemoteError ? DT_ERR_PEER : DT_ERR_NCCL;

    return dt_nccl_fail(host, result, "%s failed: %s%s%s; NCCL_DEBUG=INFO makes NCCL tell more",
                        call, ncclGetErrorString(error),
                        last && *last ? "; NCCL's last error: " : "", last ? last : "");
}

dt_result_t dt_nccl_peer_lost(const struct dt_device_host *host, const char *call, int culprit)
{
    if (culprit < 0)
        return dt_nccl_fail(host, DT_ERR_PEER, "%s was ended: a rank was lost", call);
    return dt_nccl_fail(host, DT_ERR_PEER, "%s was ended: rank %d was lost", call, culprit);
}
