/* The part of the CUDA driver's ABI that dtrun uses, declared without NVIDIA's headers.
 *
 * The declarations hold for CUDA 12 and newer. tests/unit/gpu/gpuabi compares them with the real
 * cuda.h if one is installed. If the real header has been included first, only the list of
 * functions is declared here. */
#ifndef DT_GPU_NVIDIA_ABI_CUDA_H
#define DT_GPU_NVIDIA_ABI_CUDA_H

#include <stddef.h>
#include <stdint.h>

#ifndef CUDA_VERSION

typedef unsigned long long CUdeviceptr;
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUevent_st *CUevent;
typedef struct CUstream_st *CUstream;
typedef struct CUgraph_st *CUgraph;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef void (*CUhostFn)(void *userData);

typedef enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_DEINITIALIZED = 4,
    CUDA_ERROR_STUB_LIBRARY = 34,
    CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_IMAGE = 200,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    CUDA_ERROR_ECC_UNCORRECTABLE = 214,
    CUDA_ERROR_INVALID_PTX = 218,
    CUDA_ERROR_NVLINK_UNCORRECTABLE = 220,
    CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221,
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    CUDA_ERROR_OPERATING_SYSTEM = 304,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_LAUNCH_TIMEOUT = 702,
    CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
    CUDA_ERROR_ASSERT = 710,
    CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
    CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
    CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
    CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
    CUDA_ERROR_MISALIGNED_ADDRESS = 716,
    CUDA_ERROR_INVALID_ADDRESS_SPACE = 717,
    CUDA_ERROR_INVALID_PC = 718,
    CUDA_ERROR_LAUNCH_FAILED = 719,
    CUDA_ERROR_NOT_PERMITTED = 800,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_SYSTEM_NOT_READY = 802,
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
    CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE = 804,
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
    CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
    CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
    CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
    CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908,
    CUDA_ERROR_UNKNOWN = 999
} CUresult;

typedef enum {
    CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY = 83,
    CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM = 91,
    CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
    CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103,
    CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115,
    CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS = 122
} CUdevice_attribute;

typedef enum {
    CU_POINTER_ATTRIBUTE_CONTEXT = 1,
    CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
    CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
    CU_POINTER_ATTRIBUTE_HOST_POINTER = 4,
    CU_POINTER_ATTRIBUTE_BUFFER_ID = 7,
    CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
    CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE = 10,
    CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
    CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
    CU_POINTER_ATTRIBUTE_MAPPED = 13
} CUpointer_attribute;

typedef enum { CU_MEMORYTYPE_HOST = 1, CU_MEMORYTYPE_DEVICE = 2 } CUmemorytype;

enum { CU_CTX_SCHED_AUTO = 0 };
enum { CU_STREAM_DEFAULT = 0, CU_STREAM_NON_BLOCKING = 1 };
enum { CU_EVENT_DEFAULT = 0, CU_EVENT_BLOCKING_SYNC = 1, CU_EVENT_DISABLE_TIMING = 2 };
enum { CU_EVENT_WAIT_DEFAULT = 0 };
enum {
    CU_STREAM_WAIT_VALUE_GEQ = 0,
    CU_STREAM_WAIT_VALUE_EQ = 1,
    CU_STREAM_WAIT_VALUE_AND = 2,
    CU_STREAM_WAIT_VALUE_NOR = 3
};
enum { CU_STREAM_WRITE_VALUE_DEFAULT = 0 };
enum { CU_MEM_ATTACH_GLOBAL = 1 };
enum { CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1 };
enum { CU_GET_PROC_ADDRESS_DEFAULT = 0 };

typedef enum {
    CU_STREAM_CAPTURE_STATUS_NONE = 0,
    CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
    CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2
} CUstreamCaptureStatus;

typedef enum {
    CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
    CU_STREAM_CAPTURE_MODE_RELAXED = 2
} CUstreamCaptureMode;

typedef enum {
    CU_GET_PROC_ADDRESS_SUCCESS = 0,
    CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1
} CUdriverProcAddressQueryResult;

typedef enum { CU_MEM_ALLOCATION_TYPE_PINNED = 1 } CUmemAllocationType;
typedef enum {
    CU_MEM_HANDLE_TYPE_NONE = 0,
    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1
} CUmemAllocationHandleType;
typedef enum { CU_MEM_LOCATION_TYPE_DEVICE = 1 } CUmemLocationType;
typedef enum {
    CU_MEM_ACCESS_FLAGS_PROT_NONE = 0,
    CU_MEM_ACCESS_FLAGS_PROT_READ = 1,
    CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3
} CUmemAccess_flags;
typedef enum {
    CU_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
    CU_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1
} CUmemAllocationGranularity_flags;

#define CU_STREAM_LEGACY             ((CUstream)0x1)
#define CU_STREAM_PER_THREAD         ((CUstream)0x2)
#define CU_MEMHOSTALLOC_PORTABLE     0x01
#define CU_MEMHOSTALLOC_DEVICEMAP    0x02
#define CU_MEMHOSTREGISTER_PORTABLE  0x01
#define CU_MEMHOSTREGISTER_DEVICEMAP 0x02
#define CU_IPC_HANDLE_SIZE           64

typedef struct {
    char bytes[16];
} CUuuid;

typedef struct {
    char reserved[CU_IPC_HANDLE_SIZE];
} CUipcMemHandle;

typedef struct {
    CUmemLocationType type;
    int id;
} CUmemLocation;

typedef struct {
    CUmemAllocationType type;
    CUmemAllocationHandleType requestedHandleTypes;
    CUmemLocation location;
    void *win32HandleMetaData;
    struct {
        unsigned char compressionType;
        unsigned char gpuDirectRDMACapable;
        unsigned short usage;
        unsigned char reserved[4];
    } allocFlags;
} CUmemAllocationProp;

typedef struct {
    CUmemLocation location;
    CUmemAccess_flags flags;
} CUmemAccessDesc;

#endif /* CUDA_VERSION */

/* X(result, symbol, arguments): the symbols as libcuda.so.1 exports them. */
/* clang-format off */
#define DT_CUDA_FUNCTIONS(X)                                                                       \
    X(CUresult, cuInit, (unsigned flags))                                                          \
    X(CUresult, cuDriverGetVersion, (int *version))                                                \
    X(CUresult, cuGetErrorName, (CUresult error, const char **name))                               \
    X(CUresult, cuGetErrorString, (CUresult error, const char **text))                             \
    X(CUresult, cuGetProcAddress_v2, (const char *symbol, void **function, int version,            \
        uint64_t flags, CUdriverProcAddressQueryResult *found))                                    \
    X(CUresult, cuDeviceGet, (CUdevice *device, int ordinal))                                      \
    X(CUresult, cuDeviceGetCount, (int *count))                                                    \
    X(CUresult, cuDeviceGetName, (char *name, int size, CUdevice device))                          \
    X(CUresult, cuDeviceGetUuid_v2, (CUuuid *uuid, CUdevice device))                               \
    X(CUresult, cuDeviceGetPCIBusId, (char *id, int size, CUdevice device))                        \
    X(CUresult, cuDeviceGetAttribute, (int *value, CUdevice_attribute attribute, CUdevice device)) \
    X(CUresult, cuDeviceTotalMem_v2, (size_t *bytes, CUdevice device))                             \
    X(CUresult, cuDevicePrimaryCtxRetain, (CUcontext *context, CUdevice device))                   \
    X(CUresult, cuDevicePrimaryCtxRelease_v2, (CUdevice device))                                   \
    X(CUresult, cuDevicePrimaryCtxReset_v2, (CUdevice device))                                     \
    X(CUresult, cuDevicePrimaryCtxGetState, (CUdevice device, unsigned *flags, int *active))       \
    X(CUresult, cuCtxCreate_v2, (CUcontext *context, unsigned flags, CUdevice device))             \
    X(CUresult, cuCtxDestroy_v2, (CUcontext context))                                              \
    X(CUresult, cuCtxPushCurrent_v2, (CUcontext context))                                          \
    X(CUresult, cuCtxPopCurrent_v2, (CUcontext *context))                                          \
    X(CUresult, cuCtxSetCurrent, (CUcontext context))                                              \
    X(CUresult, cuCtxGetCurrent, (CUcontext *context))                                             \
    X(CUresult, cuCtxGetDevice, (CUdevice *device))                                                \
    X(CUresult, cuCtxGetStreamPriorityRange, (int *least, int *greatest))                          \
    X(CUresult, cuCtxSynchronize, (void))                                                          \
    X(CUresult, cuMemGetInfo_v2, (size_t *free, size_t *total))                                    \
    X(CUresult, cuMemAlloc_v2, (CUdeviceptr *ptr, size_t size))                                    \
    X(CUresult, cuMemAllocManaged, (CUdeviceptr *ptr, size_t size, unsigned flags))                \
    X(CUresult, cuMemFree_v2, (CUdeviceptr ptr))                                                   \
    X(CUresult, cuMemAllocAsync, (CUdeviceptr *ptr, size_t size, CUstream stream))                 \
    X(CUresult, cuMemFreeAsync, (CUdeviceptr ptr, CUstream stream))                                \
    X(CUresult, cuMemGetAddressRange_v2, (CUdeviceptr *base, size_t *size, CUdeviceptr ptr))       \
    X(CUresult, cuMemHostAlloc, (void **ptr, size_t size, unsigned flags))                         \
    X(CUresult, cuMemFreeHost, (void *ptr))                                                        \
    X(CUresult, cuMemHostRegister_v2, (void *ptr, size_t size, unsigned flags))                    \
    X(CUresult, cuMemHostUnregister, (void *ptr))                                                  \
    X(CUresult, cuMemHostGetDevicePointer_v2, (CUdeviceptr *device, void *ptr, unsigned flags))    \
    X(CUresult, cuPointerGetAttribute, (void *value, CUpointer_attribute attribute,                \
        CUdeviceptr ptr))                                                                          \
    X(CUresult, cuPointerGetAttributes, (unsigned count, CUpointer_attribute *attributes,          \
        void **values, CUdeviceptr ptr))                                                           \
    X(CUresult, cuMemcpy, (CUdeviceptr to, CUdeviceptr from, size_t size))                         \
    X(CUresult, cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t size))                  \
    X(CUresult, cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t size))                        \
    X(CUresult, cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t size))                  \
    X(CUresult, cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream))   \
    X(CUresult, cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t size,              \
        CUstream stream))                                                                          \
    X(CUresult, cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t size, CUstream stream))  \
    X(CUresult, cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t size,              \
        CUstream stream))                                                                          \
    X(CUresult, cuMemsetD8_v2, (CUdeviceptr ptr, unsigned char value, size_t count))               \
    X(CUresult, cuMemsetD32_v2, (CUdeviceptr ptr, unsigned value, size_t count))                   \
    X(CUresult, cuMemsetD8Async, (CUdeviceptr ptr, unsigned char value, size_t count,              \
        CUstream stream))                                                                          \
    X(CUresult, cuMemsetD32Async, (CUdeviceptr ptr, unsigned value, size_t count,                  \
        CUstream stream))                                                                          \
    X(CUresult, cuStreamCreate, (CUstream *stream, unsigned flags))                                \
    X(CUresult, cuStreamCreateWithPriority, (CUstream *stream, unsigned flags, int priority))      \
    X(CUresult, cuStreamDestroy_v2, (CUstream stream))                                             \
    X(CUresult, cuStreamQuery, (CUstream stream))                                                  \
    X(CUresult, cuStreamSynchronize, (CUstream stream))                                            \
    X(CUresult, cuStreamGetFlags, (CUstream stream, unsigned *flags))                              \
    X(CUresult, cuStreamGetCtx, (CUstream stream, CUcontext *context))                             \
    X(CUresult, cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags))               \
    X(CUresult, cuStreamWriteValue32_v2, (CUstream stream, CUdeviceptr ptr, uint32_t value,        \
        unsigned flags))                                                                           \
    X(CUresult, cuStreamWriteValue64_v2, (CUstream stream, CUdeviceptr ptr, uint64_t value,        \
        unsigned flags))                                                                           \
    X(CUresult, cuStreamWaitValue32_v2, (CUstream stream, CUdeviceptr ptr, uint32_t value,         \
        unsigned flags))                                                                           \
    X(CUresult, cuStreamWaitValue64_v2, (CUstream stream, CUdeviceptr ptr, uint64_t value,         \
        unsigned flags))                                                                           \
    X(CUresult, cuLaunchHostFunc, (CUstream stream, CUhostFn function, void *data))                \
    X(CUresult, cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode))              \
    X(CUresult, cuStreamEndCapture, (CUstream stream, CUgraph *graph))                             \
    X(CUresult, cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus *status))             \
    X(CUresult, cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *mode))                    \
    X(CUresult, cuGraphDestroy, (CUgraph graph))                                                   \
    X(CUresult, cuEventCreate, (CUevent *event, unsigned flags))                                   \
    X(CUresult, cuEventRecord, (CUevent event, CUstream stream))                                   \
    X(CUresult, cuEventQuery, (CUevent event))                                                     \
    X(CUresult, cuEventSynchronize, (CUevent event))                                               \
    X(CUresult, cuEventElapsedTime, (float *milliseconds, CUevent start, CUevent end))             \
    X(CUresult, cuEventDestroy_v2, (CUevent event))                                                \
    X(CUresult, cuMemGetAllocationGranularity, (size_t *granularity,                               \
        const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags option))                 \
    X(CUresult, cuMemCreate, (CUmemGenericAllocationHandle *handle, size_t size,                   \
        const CUmemAllocationProp *prop, unsigned long long flags))                                \
    X(CUresult, cuMemRelease, (CUmemGenericAllocationHandle handle))                               \
    X(CUresult, cuMemAddressReserve, (CUdeviceptr *ptr, size_t size, size_t alignment,             \
        CUdeviceptr address, unsigned long long flags))                                            \
    X(CUresult, cuMemAddressFree, (CUdeviceptr ptr, size_t size))                                  \
    X(CUresult, cuMemMap, (CUdeviceptr ptr, size_t size, size_t offset,                            \
        CUmemGenericAllocationHandle handle, unsigned long long flags))                            \
    X(CUresult, cuMemUnmap, (CUdeviceptr ptr, size_t size))                                        \
    X(CUresult, cuMemSetAccess, (CUdeviceptr ptr, size_t size, const CUmemAccessDesc *access,      \
        size_t count))                                                                             \
    X(CUresult, cuMemExportToShareableHandle, (void *shareable,                                    \
        CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,                       \
        unsigned long long flags))                                                                 \
    X(CUresult, cuMemImportFromShareableHandle, (CUmemGenericAllocationHandle *handle,             \
        void *shareable, CUmemAllocationHandleType type))                                          \
    X(CUresult, cuIpcGetMemHandle, (CUipcMemHandle *handle, CUdeviceptr ptr))                      \
    X(CUresult, cuIpcOpenMemHandle_v2, (CUdeviceptr *ptr, CUipcMemHandle handle, unsigned flags))  \
    X(CUresult, cuIpcCloseMemHandle, (CUdeviceptr ptr))                                            \
    X(CUresult, cuModuleLoadData, (CUmodule *module, const void *image))                           \
    X(CUresult, cuModuleUnload, (CUmodule module))                                                 \
    X(CUresult, cuModuleGetFunction, (CUfunction *function, CUmodule module, const char *name))    \
    X(CUresult, cuLaunchKernel, (CUfunction function, unsigned grid_x, unsigned grid_y,            \
        unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,                     \
        unsigned shared_bytes, CUstream stream, void **parameters, void **extra))
/* clang-format on */

#endif
