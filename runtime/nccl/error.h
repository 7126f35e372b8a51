/* Errors of CUDA and NCCL as results and sentences of ours. */
#ifndef DT_NCCL_ERROR_H
#define DT_NCCL_ERROR_H

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "runtime/device.h"

/* All of them make the sentence the rank's last error and return the result. */
dt_result_t dt_nccl_fail(const struct dt_device_host *host, dt_result_t result, const char *format,
                         ...) __attribute__((format(printf, 3, 4)));
dt_result_t dt_nccl_cuda_error(const struct dt_device_host *host, const char *call,
                               cudaError_t error);
/* comm may be NULL: NCCL's last error is then not told. */
dt_result_t dt_nccl_error(const struct dt_device_host *host, const char *call, ncclResult_t error,
                          ncclComm_t comm);
dt_result_t dt_nccl_peer_lost(const struct dt_device_host *host, const char *call, int culprit);

#endif
