#include "tests/standin/nccl/device.h"

#include <pthread.h>

#include "tests/standin/nccl/errors.h"

enum { MAX_DEVICES = 16 };

static pthread_mutex_t dti_mutex = PTHREAD_MUTEX_INITIALIZER;
static CUcontext dti_primary[MAX_DEVICES];

ncclResult_t standin_get_device(CUdevice *device)
{
    CUcontext context;
    CUresult result = cuInit(0);

    if (standin_setting("STANDIN_NCCL_STARTS", 1) == 0)
        return standin_warn(ncclUnhandledCudaError, "Cuda failure 35 'CUDA driver version is "
                                                    "insufficient for CUDA runtime version'");
    *device = 0;
    if (!result)
        result = cuCtxGetCurrent(&context);
    if (!result && context)
        result = cuCtxGetDevice(device);
    return standin_cuda(result);
}

ncclResult_t standin_set_device(CUdevice device)
{
    CUresult result = CUDA_SUCCESS;

    pthread_mutex_lock(&dti_mutex);
    if (!dti_primary[device])
        result = cuDevicePrimaryCtxRetain(&dti_primary[device], device);
    if (!result)
        result = cuCtxSetCurrent(dti_primary[device]);
    pthread_mutex_unlock(&dti_mutex);
    return standin_cuda(result);
}
