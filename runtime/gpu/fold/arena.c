#include "runtime/gpu/fold/arena.h"

#include <stdint.h>

#include "runtime/gpu/nvidia/cuda.h"

static CUmemAllocationProp properties(CUdevice device)
{
    CUmemAllocationProp p = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                              .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR };

    p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    p.location.id = device;
    return p;
}

static CUresult round_up(CUdevice device, size_t *bytes, const char **function)
{
    CUmemAllocationProp p = properties(device);
    size_t whole = 0;
    CUresult result =
        dt_cuda()->cuMemGetAllocationGranularity(&whole, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM);

    *function = "cuMemGetAllocationGranularity";
    if (!result)
        *bytes = (*bytes + whole - 1) / whole * whole;
    return result;
}

static CUresult map(struct dt_gpu_arena *a, CUdevice device, const char **function)
{
    const struct dt_cuda *cuda = dt_cuda();
    CUmemAccessDesc access = { .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    CUresult result = cuda->cuMemAddressReserve(&a->address, a->bytes, 0, 0, 0);

    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device;
    *function = "cuMemAddressReserve";
    if (result)
        return result;
    *function = "cuMemMap";
    result = cuda->cuMemMap(a->address, a->bytes, 0, a->handle, 0);
    if (result) {
        cuda->cuMemAddressFree(a->address, a->bytes);
        a->address = 0;
        return result;
    }
    *function = "cuMemSetAccess";
    return cuda->cuMemSetAccess(a->address, a->bytes, &access, 1);
}

CUresult dt_gpu_arena_make(struct dt_gpu_arena *a, CUdevice device, size_t bytes,
                           const char **function)
{
    CUmemAllocationProp p = properties(device);
    CUresult result;

    *a = (struct dt_gpu_arena){ .bytes = bytes };
    result = round_up(device, &a->bytes, function);
    if (!result) {
        *function = "cuMemCreate";
        result = dt_cuda()->cuMemCreate(&a->handle, a->bytes, &p, 0);
    }
    if (!result)
        result = map(a, device, function);
    if (result)
        dt_gpu_arena_close(a);
    return result;
}

CUresult dt_gpu_arena_export(const struct dt_gpu_arena *a, int *fd)
{
    return dt_cuda()->cuMemExportToShareableHandle(fd, a->handle,
                                                   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
}

CUresult dt_gpu_arena_import(struct dt_gpu_arena *a, CUdevice device, size_t bytes, int fd,
                             const char **function)
{
    CUresult result;

    *a = (struct dt_gpu_arena){ .bytes = bytes };
    result = round_up(device, &a->bytes, function);
    if (!result) {
        *function = "cuMemImportFromShareableHandle";
        result = dt_cuda()->cuMemImportFromShareableHandle(
            &a->handle, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    }
    if (!result)
        result = map(a, device, function);
    if (result)
        dt_gpu_arena_close(a);
    return result;
}

void dt_gpu_arena_close(struct dt_gpu_arena *a)
{
    const struct dt_cuda *cuda = dt_cuda();

    if (a->address) {
        cuda->cuMemUnmap(a->address, a->bytes);
        cuda->cuMemAddressFree(a->address, a->bytes);
    }
    if (a->handle)
        cuda->cuMemRelease(a->handle);
    *a = (struct dt_gpu_arena){ 0 };
}
