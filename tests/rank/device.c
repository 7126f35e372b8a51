#include "tests/rank/device.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void need(dt_result_t result)
{
    if (result == DT_OK)
        return;
    printf("%d: %s\n", (int)result, dt_last_error());
    fflush(stdout);
    exit(result == DT_ERR_PEER ? 3 : 1);
}

/* The driver keeps its latest errors in words (since CUDA 12.9). */
static void show_driver_log(int status, void *driver)
{
    enum { MOST = 25600 }; /* the driver's limit */
    static char text[MOST + 1];
    size_t bytes = MOST;
    CUresult (*dump)(void *from, char *text, size_t *bytes, unsigned flags);

    *(void **)&dump = dlsym(driver, "cuLogsDumpToMemory");
    if (status && dump && dump(NULL, text, &bytes, 0) == CUDA_SUCCESS)
        fprintf(stderr, "the CUDA driver's log:\n%.*s\n", (int)bytes, text);
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
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    const char *lacks;

    if (!driver) {
        printf("%s\n", dlerror());
        exit(5);
    }
    lacks = dt_cuda()->lacks;
    if (lacks) {
        printf("the CUDA driver lacks %s\n", lacks);
        exit(5);
    }
    DRIVE(cuInit(0));
    on_exit(show_driver_log, driver); /* runs before the driver's own functions for the exit */
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

void device_join(void)
{
    signal(SIGTERM, SIG_IGN); /* leaves time to print what a call returned */
    need(dt_init());
    device_use(0);
}

bool device_do(const struct doing *doings, size_t n, int argc, char **argv)
{
    for (size_t i = 0; i < n; i++) {
        if (argc != 2 || strcmp(argv[1], doings[i].name) != 0)
            continue;
        doings[i].run();
        return true;
    }
    return false;
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
