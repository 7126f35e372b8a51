/* Rules of the runtime: a thread without a current context gets the primary context of its device,
 * which is device 0 until it calls cudaSetDevice. Errors of the driver and the runtime have the
 * same numbers. */
#include "tests/standin/nvidia/runtime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tests/standin/nccl/faults.h"
#include "tests/standin/nccl/primary.h"
#include "tests/standin/nvidia/kernel.h"
#include "tests/standin/standin.h"

enum { RUNTIME_VERSION = 13000, UNREGISTERED = 0 };

/* Attributes of devices that abi_cuda.h does not need. */
enum {
    SHARED_MEMORY_OF_A_BLOCK = 97,
    GPU_DIRECT_RDMA = 110,
    GPU_DIRECT_RDMA_OF_MAPPED_MEMORY = 116,
    DMA_BUF = 124,
    FABRIC = 128,
    MULTICAST = 132,
    NUMA_NODE = 134,
};

static __thread CUdevice dti_device;
static pthread_once_t dti_once = PTHREAD_ONCE_INIT;

static void init_driver(void)
{
    cuInit(0);
}

static void enter(void)
{
    CUcontext context = NULL;

    pthread_once(&dti_once, init_driver);
    cuCtxGetCurrent(&context);
    if (!context)
        standin_use_primary(dti_device);
}

#define UNUSED __attribute__((unused))

/* X(name, function of the driver, parameters, arguments) */
/* clang-format off */
#define FORWARDED(X)                                                                               \
    X(cudaDeviceGetPCIBusId, cuDeviceGetPCIBusId, (char *id, int size, CUdevice device),           \
      (id, size, device))                                                                          \
    X(cudaDriverGetVersion, cuDriverGetVersion, (int *version), (version))                         \
    X(cudaEventCreateWithFlags, cuEventCreate, (CUevent *event, unsigned flags), (event, flags))   \
    X(cudaEventCreate, cuEventCreate, (CUevent *event), (event, CU_EVENT_DEFAULT))                 \
    X(cudaEventDestroy, cuEventDestroy_v2, (CUevent event), (event))                               \
    X(cudaEventQuery, cuEventQuery, (CUevent event), (event))                                      \
    X(cudaEventRecord, cuEventRecord, (CUevent event, CUstream stream), (event, stream))           \
    X(cudaEventSynchronize, cuEventSynchronize, (CUevent event), (event))                          \
    X(cudaFreeAsync, cuMemFreeAsync, (CUdeviceptr ptr, CUstream stream), (ptr, stream))            \
    X(cudaGetDeviceCount, cuDeviceGetCount, (int *count), (count))                                 \
    X(cudaHostAlloc, cuMemHostAlloc, (void **ptr, size_t size, unsigned flags),                    \
      (ptr, size, flags))                                                                          \
    X(cudaHostGetDevicePointer, cuMemHostGetDevicePointer_v2,                                      \
      (CUdeviceptr *device, void *ptr, unsigned flags), (device, ptr, flags))                      \
    X(cudaHostRegister, cuMemHostRegister_v2, (void *ptr, size_t size, unsigned flags),            \
      (ptr, size, flags))                                                                          \
    X(cudaHostUnregister, cuMemHostUnregister, (void *ptr), (ptr))                                 \
    X(cudaIpcCloseMemHandle, cuIpcCloseMemHandle, (CUdeviceptr ptr), (ptr))                        \
    X(cudaIpcGetMemHandle, cuIpcGetMemHandle, (CUipcMemHandle *handle, CUdeviceptr ptr),           \
      (handle, ptr))                                                                               \
    X(cudaIpcOpenMemHandle, cuIpcOpenMemHandle_v2,                                                 \
      (CUdeviceptr *ptr, CUipcMemHandle handle, unsigned flags), (ptr, handle, flags))             \
    X(cudaLaunchHostFunc, cuLaunchHostFunc, (CUstream stream, CUhostFn function, void *data),      \
      (stream, function, data))                                                                    \
    X(cudaMalloc, cuMemAlloc_v2, (CUdeviceptr *ptr, size_t size), (ptr, size))                     \
    X(cudaMallocFromPoolAsync, cuMemAllocAsync,                                                    \
      (CUdeviceptr *ptr, size_t size, UNUSED void *pool, CUstream stream), (ptr, size, stream))    \
    X(cudaMemcpy, cuMemcpy, (CUdeviceptr to, CUdeviceptr from, size_t size, UNUSED int kind),      \
      (to, from, size))                                                                            \
    X(cudaMemcpyAsync, cuMemcpyAsync,                                                              \
      (CUdeviceptr to, CUdeviceptr from, size_t size, UNUSED int kind, CUstream stream),           \
      (to, from, size, stream))                                                                    \
    X(cudaMemset, cuMemsetD8_v2, (CUdeviceptr ptr, int value, size_t size),                        \
      (ptr, (unsigned char)value, size))                                                           \
    X(cudaMemsetAsync, cuMemsetD8Async,                                                            \
      (CUdeviceptr ptr, int value, size_t size, CUstream stream),                                  \
      (ptr, (unsigned char)value, size, stream))                                                   \
    X(cudaStreamDestroy, cuStreamDestroy_v2, (CUstream stream), (stream))                          \
    X(cudaStreamIsCapturing, cuStreamIsCapturing,                                                  \
      (CUstream stream, CUstreamCaptureStatus *status), (stream, status))                          \
    X(cudaStreamSynchronize, cuStreamSynchronize, (CUstream stream), (stream))                     \
    X(cudaStreamWaitEvent, cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags),    \
      (stream, event, flags))                                                                      \
    X(cudaThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode,                      \
      (CUstreamCaptureMode *mode), (mode))
/* clang-format on */

#define FORWARD(name, function, parameters, arguments)                                             \
    static CUresult name parameters                                                                \
    {                                                                                              \
        enter();                                                                                   \
        return function arguments;                                                                 \
    }
FORWARDED(FORWARD)
#undef FORWARD

static CUresult cudaSetDevice(CUdevice device)
{
    int count = 0;

    pthread_once(&dti_once, init_driver);
    cuDeviceGetCount(&count);
    if (device < 0 || device >= count)
        return CUDA_ERROR_INVALID_DEVICE;
    dti_device = device;
    return standin_use_primary(device);
}

static CUresult cudaGetDevice(CUdevice *device)
{
    enter();
    return cuCtxGetDevice(device);
}

static CUresult cudaDeviceGetByPCIBusId(CUdevice *device, const char *id)
{
    int count = 0;
    char found[32];

    enter();
    cuDeviceGetCount(&count);
    for (*device = 0; *device < count; ++*device)
        if (!cuDeviceGetPCIBusId(found, sizeof found, *device) && strcasecmp(found, id) == 0)
            return CUDA_SUCCESS;
    return CUDA_ERROR_INVALID_DEVICE;
}

static CUresult get_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    switch ((int)attribute) {
    case SHARED_MEMORY_OF_A_BLOCK:
        *value = 227 << 10;
        return CUDA_SUCCESS;
    case GPU_DIRECT_RDMA:
    case GPU_DIRECT_RDMA_OF_MAPPED_MEMORY:
    case DMA_BUF:
    case FABRIC:
    case MULTICAST:
    case NUMA_NODE:
        *value = 0;
        return CUDA_SUCCESS;
    default:
        return cuDeviceGetAttribute(value, attribute, device);
    }
}

static CUresult cudaDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    enter();
    return get_attribute(value, attribute, device);
}

struct device_properties {
    char name[256], uuid[16], luid[8];
    unsigned luid_node_mask;
    size_t memory; /* NCCL reads no other field */
};

static CUresult cudaGetDeviceProperties(struct device_properties *properties, CUdevice device)
{
    enter();
    return cuDeviceTotalMem_v2(&properties->memory, device);
}

static CUresult cudaDeviceCanAccessPeer(int *can, UNUSED CUdevice device, UNUSED CUdevice peer)
{
    *can = 1;
    return CUDA_SUCCESS;
}

static const char *cudaGetErrorString(CUresult error)
{
    const char *text = NULL;

    cuGetErrorString(error, &text);
    return text ? text : "unrecognized error code";
}

static CUresult cudaRuntimeGetVersion(int *version)
{
    *version = RUNTIME_VERSION;
    return CUDA_SUCCESS;
}

static CUresult cudaFree(CUdeviceptr ptr)
{
    enter();
    return ptr ? cuMemFree_v2(ptr) : CUDA_SUCCESS;
}

static CUresult cudaFreeHost(void *ptr)
{
    enter();
    return ptr ? cuMemFreeHost(ptr) : CUDA_SUCCESS;
}

static CUresult cudaStreamCreateWithFlags(CUstream *stream, unsigned flags)
{
    enter();
    if (standin_is_asked_for("init-error", standin_rank()))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return cuStreamCreate(stream, flags);
}

static CUresult cudaStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status,
                                         unsigned long long *id, CUgraph *graph,
                                         const void **dependencies, const void **edges,
                                         size_t *count)
{
    enter();
    if (id)
        *id = 0;
    if (graph)
        *graph = NULL;
    if (dependencies)
        *dependencies = NULL;
    if (edges)
        *edges = NULL;
    if (count)
        *count = 0;
    return cuStreamIsCapturing(stream, status);
}

struct pointer_attributes {
    int type, device;
    CUdeviceptr device_pointer;
    void *host_pointer;
    long reserved[8];
};

static CUresult cudaPointerGetAttributes(struct pointer_attributes *attributes, CUdeviceptr ptr)
{
    memset(attributes, 0, sizeof(*attributes));
    enter();
    if (cuPointerGetAttribute(&attributes->type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ptr)) {
        attributes->type = UNREGISTERED;
        return CUDA_SUCCESS;
    }
    cuPointerGetAttribute(&attributes->device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, ptr);
    return cuPointerGetAttribute(&attributes->device_pointer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                 ptr);
}

/* NCCL takes memory from pools, all of which here are the device's memory. */
static CUresult cudaMemPoolCreate(void **pool, UNUSED const void *properties)
{
    static char the_device;

    *pool = &the_device;
    return CUDA_SUCCESS;
}

static CUresult nothing(void)
{
    return CUDA_SUCCESS;
}

struct function_attributes {
    size_t shared, constant, local;
    int threads, registers, ptx, binary;
};

/* When NCCL starts, it asks this of each kernel. */
static CUresult cudaFuncGetAttributes(struct function_attributes *attributes,
                                      UNUSED const void *function)
{
    enter();
    if (standin_is_asked_for("init-hang", standin_rank()))
        standin_hang_forever();
    *attributes = (struct function_attributes){ .threads = 1024 };
    return CUDA_SUCCESS;
}

static CUresult cudaGetFuncBySymbol(CUfunction *function, const void *symbol)
{
    *function = (CUfunction)(uintptr_t)symbol;
    return CUDA_SUCCESS;
}

struct launch_config {
    unsigned grid[3], block[3], shared_bytes;
    CUstream stream;
};

/* NCCL passes its arguments as one buffer: extra = { tag, buffer, tag, &size, end }. */
static CUresult launch_kernel(const struct launch_config *config, UNUSED CUfunction function,
                              UNUSED void **parameters, void **extra)
{
    if (standin_is_asked_for("launch-hang", standin_rank()))
        standin_hang_forever();
    return standin_launch(config->stream, extra[1], *(size_t *)extra[3]);
}

static CUresult cudaGetDriverEntryPointByVersion(const char *name, void **function, int version,
                                                 unsigned long long flags, int *found)
{
    CUresult result;

    enter();
    if (strcmp(name, "cuLaunchKernelEx") == 0)
        *function = (void *)launch_kernel;
    else if (strcmp(name, "cuDeviceGetAttribute") == 0)
        *function = (void *)get_attribute;
    else if (cuGetProcAddress_v2(name, function, version, flags, NULL) != CUDA_SUCCESS)
        *function = dlsym(RTLD_DEFAULT, name);
    result = *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
    *found = result ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND : CU_GET_PROC_ADDRESS_SUCCESS;
    return result;
}

void *standin_runtime_function(const char *name)
{
#define ENTRY(function)                                      { #function, (void *)function },
#define FORWARDED_ENTRY(function, to, parameters, arguments) ENTRY(function)
    static const struct {
        const char *name;
        void *function;
    } functions[] = {
        /* clang-format off */
        FORWARDED(FORWARDED_ENTRY)
        ENTRY(cudaDeviceCanAccessPeer)
        ENTRY(cudaDeviceGetAttribute)
        ENTRY(cudaDeviceGetByPCIBusId)
        ENTRY(cudaFree)
        ENTRY(cudaFreeHost)
        ENTRY(cudaFuncGetAttributes)
        ENTRY(cudaGetDevice)
        ENTRY(cudaGetDeviceProperties)
        ENTRY(cudaGetDriverEntryPointByVersion)
        ENTRY(cudaGetErrorString)
        ENTRY(cudaGetFuncBySymbol)
        ENTRY(cudaMemPoolCreate)
        ENTRY(cudaPointerGetAttributes)
        ENTRY(cudaRuntimeGetVersion)
        ENTRY(cudaSetDevice)
        ENTRY(cudaStreamCreateWithFlags)
        ENTRY(cudaStreamGetCaptureInfo)
        /* clang-format on */
        { "cudaDeviceEnablePeerAccess", (void *)nothing },
        { "cudaDeviceSetLimit", (void *)nothing },
        { "cudaFuncSetAttribute", (void *)nothing },
        { "cudaGetLastError", (void *)nothing },
        { "cudaMemPoolDestroy", (void *)nothing },
        { "cudaMemPoolSetAttribute", (void *)nothing },
    };

    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
        if (strcmp(functions[i].name, name) == 0)
            return functions[i].function;
    return NULL;
}
