/* Memory that processes share: the calls of virtual memory management, and CUDA IPC.
 *
 * Rules: sizes are multiples of the granularity. Memory can be exported only if it was created as
 * exportable. A descriptor outlives the exporter and its handle. The device cannot touch mapped
 * memory before cuMemSetAccess. An IPC handle stands for the whole allocation, and the exporter
 * itself cannot open it. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/standin/driver.h"

enum { GRANULARITY = 2 << 20 };

struct handle { /* a CUmemGenericAllocationHandle points to it */
    int file;
    size_t size;
    CUdevice device;
    bool exportable;
    unsigned uses; /* its holders, and mappings */
};

struct ipc { /* what a CUipcMemHandle holds */
    int process, file;
    size_t size;
    CUdevice device;
};
_Static_assert(sizeof(struct ipc) <= sizeof(CUipcMemHandle), "an IPC handle has room for it");

static bool is_whole(size_t size)
{
    return size && size % GRANULARITY == 0;
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                       CUmemAllocationGranularity_flags option)
{
    CUresult result = standin_refused(__func__);

    (void)option;
    if (result)
        return result;
    if (!granularity || !prop)
        return CUDA_ERROR_INVALID_VALUE;
    *granularity = GRANULARITY;
    return CUDA_SUCCESS;
}

static CUresult new_handle(struct handle made, CUmemGenericAllocationHandle *handle)
{
    struct handle *kept = malloc(sizeof(*kept));

    *kept = made;
    kept->uses = 1;
    *handle = (uintptr_t)kept;
    return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                     const CUmemAllocationProp *prop, unsigned long long flags)
{
    CUresult result = standin_ready();
    struct handle made = { .size = size };

    if (!result)
        result = standin_refused(__func__);
    if (!result && standin_setting("STANDIN_LACKS", 0) ==
                       CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)
        result = CUDA_ERROR_NOT_SUPPORTED;
    if (result)
        return result;
    if (!handle || !prop || flags || !is_whole(size) ||
        prop->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    if (!standin_device_exists(prop->location.id))
        return CUDA_ERROR_INVALID_DEVICE;
    if (size > (size_t)standin_setting("STANDIN_MEMORY", 1L << 30))
        return CUDA_ERROR_OUT_OF_MEMORY;
    made.device = prop->location.id;
    made.exportable = prop->requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    made.file = memfd_create("standin-shared", MFD_CLOEXEC);
    if (made.file < 0 || ftruncate(made.file, (off_t)size) < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    return new_handle(made, handle);
}

static void release_locked(struct handle *made)
{
    if (--made->uses > 0)
        return;
    close(made->file);
    free(made);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    struct handle *made = (struct handle *)(uintptr_t)handle;

    if (!made)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&standin_mutex);
    release_locked(made);
    pthread_mutex_unlock(&standin_mutex);
    return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags)
{
    const struct handle *made = (const struct handle *)(uintptr_t)handle;
    CUresult result = standin_refused(__func__);
    int file;

    if (result)
        return result;
    if (!shareable || !made || flags || !made->exportable ||
        type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    file = fcntl(made->file, F_DUPFD_CLOEXEC, 0);
    if (file < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    memcpy(shareable, &file, sizeof(file));
    return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
                                        CUmemAllocationHandleType type)
{
    struct handle made = { .exportable = true };
    CUresult result = standin_refused(__func__);
    struct stat file;

    if (result)
        return result;
    if (!handle || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    made.file = fcntl((int)(intptr_t)shareable, F_DUPFD_CLOEXEC, 0);
    if (made.file < 0 || fstat(made.file, &file) < 0 || !is_whole((size_t)file.st_size))
        return CUDA_ERROR_INVALID_VALUE;
    made.size = (size_t)file.st_size;
    return new_handle(made, handle);
}

/* NCCL makes these two calls, libdtrun does not. */
STANDIN_API CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *at);
STANDIN_API CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                            CUmemGenericAllocationHandle handle);

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *at)
{
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    struct block *block;

    pthread_mutex_lock(&standin_mutex);
    block = standin_block_locked((CUdeviceptr)(uintptr_t)at, 1);
    if (block && block->kind == STANDIN_MAPPED) {
        block->handle->uses++;
        *handle = (uintptr_t)block->handle;
        result = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                CUmemGenericAllocationHandle handle)
{
    const struct handle *made = (const struct handle *)(uintptr_t)handle;

    *prop = (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes =
            made->exportable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE,
        .location = { CU_MEM_LOCATION_TYPE_DEVICE, made->device },
    };
    return CUDA_SUCCESS;
}

static void *reserve(void *at, size_t size)
{
    return mmap(at, size, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED : 0), -1, 0);
}

CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr address,
                             unsigned long long flags)
{
    CUresult result = standin_refused(__func__);
    void *base;

    (void)alignment;
    (void)address; /* a hint, which may be ignored */
    if (result)
        return result;
    if (!ptr || flags || !is_whole(size))
        return CUDA_ERROR_INVALID_VALUE;
    base = reserve(NULL, size);
    if (base == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *ptr = (CUdeviceptr)(uintptr_t)base;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
    return munmap((void *)(uintptr_t)ptr, size) < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
    struct handle *made = (struct handle *)(uintptr_t)handle;
    struct block block = { .kind = STANDIN_MAPPED, .handle = made };
    CUresult result = standin_refused(__func__);

    if (result)
        return result;
    if (!ptr || !made || offset || flags || size != made->size)
        return CUDA_ERROR_INVALID_VALUE;
    result =
        standin_map(fcntl(made->file, F_DUPFD_CLOEXEC, 0), 0, size, (void *)(uintptr_t)ptr, &block);
    if (result)
        return result;
    block.device = made->device;
    pthread_mutex_lock(&standin_mutex);
    made->uses++;
    standin_add_locked(block);
    pthread_mutex_unlock(&standin_mutex);
    return CUDA_SUCCESS;
}

static struct block *mapped_locked(CUdeviceptr ptr, size_t size)
{
    struct block *block = standin_block_locked(ptr, size);

    return block && block->kind == STANDIN_MAPPED && block->size == size ? block : NULL;
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
    CUresult result = CUDA_SUCCESS;
    struct block *block;

    standin_await_stern();
    pthread_mutex_lock(&standin_mutex);
    block = mapped_locked(ptr, size);
    if (block) {
        munmap(block->view, size);
        reserve(block->base, size);
        release_locked(block->handle);
        standin_forget_locked(block);
    } else {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *access, size_t count)
{
    CUresult result = standin_refused(__func__);
    struct block *block;

    if (result)
        return result;
    result = CUDA_ERROR_INVALID_VALUE;
    standin_await_stern();
    pthread_mutex_lock(&standin_mutex);
    block = mapped_locked(ptr, size);
    for (size_t i = 0; block && i < count; i++) {
        block->accessible = access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        result = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr ptr)
{
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    struct ipc ipc = { .process = getpid() };
    struct block *block;

    pthread_mutex_lock(&standin_mutex);
    block = standin_block_locked(ptr, 1);
    if (block && block->kind == STANDIN_DEVICE && !block->imported && !block->pooled) {
        ipc.file = block->file;
        ipc.size = block->size;
        ipc.device = block->device;
        memset(handle, 0, sizeof(*handle));
        memcpy(handle, &ipc, sizeof(ipc));
        result = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *ptr, CUipcMemHandle handle, unsigned flags)
{
    struct block block = { .kind = STANDIN_DEVICE, .imported = true, .accessible = true };
    CUresult result = standin_current(&block.context);
    struct ipc ipc;
    char path[64];
    int file;

    memcpy(&ipc, &handle, sizeof(ipc));
    if (result)
        return result;
    if (flags & ~(unsigned)CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        return CUDA_ERROR_INVALID_VALUE;
    if (ipc.process == getpid())
        return CUDA_ERROR_INVALID_CONTEXT;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", ipc.process, ipc.file);
    file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return CUDA_ERROR_INVALID_VALUE;
    result = standin_map(file, 0, ipc.size, NULL, &block);
    block.device = ipc.device;
    *ptr = (CUdeviceptr)(uintptr_t)block.base;
    pthread_mutex_lock(&standin_mutex);
    if (!result)
        standin_add_locked(block);
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr ptr)
{
    CUcontext context;
    CUresult result = standin_current(&context);
    struct block *block;

    if (result)
        return result;
    pthread_mutex_lock(&standin_mutex);
    standin_await_context_locked(context);
    block = standin_block_locked(ptr, 1);
    if (block && block->imported && (CUdeviceptr)(uintptr_t)block->base == ptr) {
        munmap(block->base, block->size);
        munmap(block->view, block->size);
        standin_forget_locked(block);
    } else {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    pthread_mutex_unlock(&standin_mutex);
    return result;
}
