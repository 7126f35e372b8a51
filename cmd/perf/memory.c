#include "cmd/perf/memory.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/gpu/nvidia/cuda.h"
#include "runtime/wire/page.h"

static struct {
    const struct dt_cuda *cuda; /* NULL: host memory */
    char name[100];             /* bus and name */
} dti_memory;

static CUdeviceptr address(const void *p)
{
    return (CUdeviceptr)(uintptr_t)p;
}

/* A failure here comes too late to be reported in any better way. */
static void need(CUresult result, const char *function)
{
    char text[DT_CUDA_TEXT];

    if (!result)
        return;
    fprintf(stderr, "dtrun-perf: %s\n", dt_cuda_describe(function, result, text));
    exit(1);
}

static CUresult choose_device(const struct dt_cuda *cuda, const char **function)
{
    char bus[32] = "", name[64] = "";
    CUdevice device;
    CUcontext context;
    CUresult result = cuda->cuInit(0);

    *function = "cuInit";
    if (!result) {
        *function = "cuDeviceGet";
        result = cuda->cuDeviceGet(&device, 0);
    }
    if (!result) {
        *function = "cuDevicePrimaryCtxRetain";
        result = cuda->cuDevicePrimaryCtxRetain(&context, device);
    }
    if (!result) {
        *function = "cuCtxSetCurrent";
        result = cuda->cuCtxSetCurrent(context);
    }
    if (result)
        return result;
    cuda->cuDeviceGetPCIBusId(bus, sizeof bus, device);
    cuda->cuDeviceGetName(name, sizeof name, device);
    snprintf(dti_memory.name, sizeof dti_memory.name, "[%s] %s", bus, name);
    return CUDA_SUCCESS;
}

bool dt_perf_memory_use_gpu(char text[DT_PERF_MEMORY_TEXT])
{
    const struct dt_cuda *cuda = dlopen("libcuda.so.1", RTLD_NOW) ? dt_cuda() : NULL;
    char what[DT_CUDA_TEXT];
    const char *function;
    CUresult result;

    if (!cuda) {
        snprintf(text, DT_PERF_MEMORY_TEXT, "--device cuda: %s", dlerror());
        return false;
    }
    if (cuda->lacks) {
        snprintf(text, DT_PERF_MEMORY_TEXT, "--device cuda: the driver lacks %s: CUDA 12 is needed",
                 cuda->lacks);
        return false;
    }
    result = choose_device(cuda, &function);
    if (result) {
        dt_cuda_describe(function, result, what);
        snprintf(text, DT_PERF_MEMORY_TEXT, "--device cuda: %s", what);
        return false;
    }
    dti_memory.cuda = cuda;
    return true;
}

bool dt_perf_memory_is_gpu(void)
{
    return dti_memory.cuda != NULL;
}

const char *dt_perf_memory_name(void)
{
    return dti_memory.cuda ? dti_memory.name : "host memory";
}

void *dt_perf_memory_new(size_t bytes)
{
    size_t room = dt_page_round_up(bytes);
    CUdeviceptr ptr = 0;
    void *p;

    if (!dti_memory.cuda)
        p = aligned_alloc(dt_page_bytes(), room);
    else
        p = dti_memory.cuda->cuMemAlloc_v2(&ptr, room) ? NULL : (void *)(uintptr_t)ptr;
    if (p)
        dt_perf_memory_clear(p, room);
    return p;
}

void dt_perf_memory_free(void *p)
{
    if (!dti_memory.cuda)
        free(p);
    else if (p)
        dti_memory.cuda->cuMemFree_v2(address(p));
}

void dt_perf_memory_clear(void *p, size_t bytes)
{
    if (!dti_memory.cuda)
        memset(p, 0, bytes);
    else if (bytes)
        need(dti_memory.cuda->cuMemsetD8_v2(address(p), 0, bytes), "cuMemsetD8");
}

void dt_perf_memory_copy(void *to, const void *from, size_t bytes)
{
    if (!dti_memory.cuda)
        memcpy(to, from, bytes);
    else if (bytes)
        need(dti_memory.cuda->cuMemcpyDtoDAsync_v2(address(to), address(from), bytes, NULL),
             "cuMemcpyDtoDAsync");
}

void dt_perf_memory_put(void *p, const void *host, size_t bytes)
{
    if (!dti_memory.cuda)
        memcpy(p, host, bytes);
    else if (bytes)
        need(dti_memory.cuda->cuMemcpyHtoD_v2(address(p), host, bytes), "cuMemcpyHtoD");
}

void dt_perf_memory_get(void *host, const void *p, size_t bytes)
{
    if (!dti_memory.cuda)
        memcpy(host, p, bytes);
    else if (bytes)
        need(dti_memory.cuda->cuMemcpyDtoH_v2(host, address(p), bytes), "cuMemcpyDtoH");
}
