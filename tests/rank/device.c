#include "tests/rank/device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

void need(dt_result_t result)
{
    if (result == DT_OK)
        return;
    printf("%d: %s\n", (int)result, dt_last_error());
    fflush(stdout);
    exit(result == DT_ERR_PEER ? 3 : 1);
}

void drive(CUresult result, const char *what)
{
    char text[DT_CUDA_TEXT];

    if (result == CUDA_SUCCESS)
        return;
    printf("%s\n", dt_cuda_describe(what, result, text));
    fflush(stdout);
    exit(4);
}

void device_load(void)
{
    const char *lacks;

    if (!dlopen("libcuda.so.1", RTLD_NOW)) {
        printf("%s\n", dlerror());
        exit(5);
    }
    lacks = dt_cuda()->lacks;
    if (lacks) {
        printf("the CUDA driver lacks %s\n", lacks);
        exit(5);
    }
    DRIVE(cuInit(0));
}

void device_use(int ordinal)
{
    CUcontext context;
    CUdevice device;

    device_load();
    DRIVE(cuDeviceGet(&device, ordinal));
    DRIVE(cuDevicePrimaryCtxRetain(&context, device));
    DRIVE(cuCtxSetCurrent(context));
}

CUdeviceptr address(const void *ptr)
{
    return (CUdeviceptr)(uintptr_t)ptr;
}

void *device_new(size_t bytes)
{
    CUdeviceptr ptr;

    DRIVE(cuMemAlloc_v2(&ptr, bytes ? bytes : 1));
    return (void *)(uintptr_t)ptr;
}

void gate_make(struct gate *gate)
{
    void *word;

    DRIVE(cuMemHostAlloc(&word, sizeof *gate->word, CU_MEMHOSTALLOC_DEVICEMAP));
    DRIVE(cuMemHostGetDevicePointer_v2(&gate->address, word, 0));
    gate->word = word;
    *gate->word = 0;
}

void gate_shut(struct gate *gate, CUstream stream)
{
    *gate->word = 0;
    DRIVE(cuStreamWaitValue32_v2(stream, gate->address, 1, CU_STREAM_WAIT_VALUE_EQ));
}

void gate_open(struct gate *gate)
{
    *gate->word = 1;
}
