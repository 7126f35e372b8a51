#include "tests/standin/nccl/device.h"

#include "tests/standin/nccl/errors.h"
#include "tests/standin/nccl/primary.h"

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
    return standin_cuda(standin_use_primary(device));
}
