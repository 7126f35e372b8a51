#include "tests/standin/nccl/primary.h"

#include <pthread.h>

#include "tests/standin/driver.h"

static pthread_mutex_t dti_mutex = PTHREAD_MUTEX_INITIALIZER;
static CUcontext dti_primary[STANDIN_MOST_DEVICES];

CUresult standin_use_primary(CUdevice device)
{
    CUresult result = CUDA_SUCCESS;

    pthread_mutex_lock(&dti_mutex);
    if (!dti_primary[device])
        result = cuDevicePrimaryCtxRetain(&dti_primary[device], device);
    pthread_mutex_unlock(&dti_mutex);
    return result ? result : cuCtxSetCurrent(dti_primary[device]);
}
