/* The functions of NVML that NCCL calls. It finds them where it looks for libnvidia-ml.so.1. Device
 * i has the handle i + 1 and, as in the stand-in for the driver, that number as its PCI bus. */
#include <stdint.h>
#include <stdio.h>

#include "tests/standin/standin.h"

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, HOPPER = 9 };

STANDIN_API int nvmlInit_v2(void);
STANDIN_API int nvmlDeviceGetCount_v2(unsigned *count);
STANDIN_API int nvmlDeviceGetHandleByIndex(unsigned index, void **device);
STANDIN_API int nvmlDeviceGetHandleByPciBusId(const char *id, void **device);
STANDIN_API int nvmlDeviceGetIndex(const void *device, unsigned *index);
STANDIN_API const char *nvmlErrorString(int error);
STANDIN_API int nvmlDeviceGetCudaComputeCapability(const void *device, int *major, int *minor);
STANDIN_API int nvmlDeviceGetP2PStatus(const void *device, const void *peer, int way, int *status);
STANDIN_API int nvmlDeviceGetNvLinkCapability(const void *device, unsigned link, int capability,
                                              unsigned *result);

int nvmlInit_v2(void)
{
    return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = (unsigned)standin_setting("STANDIN_DEVICES", 0);
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex(unsigned index, void **device)
{
    *device = (void *)(uintptr_t)(index + 1);
    return SUCCESS;
}

int nvmlDeviceGetHandleByPciBusId(const char *id, void **device)
{
    unsigned domain, bus;

    if (sscanf(id, "%x:%x:", &domain, &bus) != 2)
        return NOT_FOUND;
    *device = (void *)(uintptr_t)bus;
    return SUCCESS;
}

int nvmlDeviceGetIndex(const void *device, unsigned *index)
{
    *index = (unsigned)(uintptr_t)device - 1;
    return SUCCESS;
}

const char *nvmlErrorString(int error)
{
    return error == NOT_FOUND ? "Not Found" : "Unknown Error";
}

int nvmlDeviceGetCudaComputeCapability(const void *device, int *major, int *minor)
{
    (void)device;
    *major = HOPPER;
    *minor = 0;
    return SUCCESS;
}

int nvmlDeviceGetP2PStatus(const void *device, const void *peer, int way, int *status)
{
    (void)device;
    (void)peer;
    (void)way;
    *status = 0;
    return SUCCESS;
}

int nvmlDeviceGetNvLinkCapability(const void *device, unsigned link, int capability,
                                  unsigned *result)
{
    (void)device;
    (void)link;
    (void)capability;
    (void)result;
    return NOT_SUPPORTED;
}
