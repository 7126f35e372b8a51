/* Memory, and what the driver knows about a pointer. Pinned memory ends with its context.
 *
 * Device memory is a file in memory that is mapped twice. At the device's address it has no
 * permissions, so that the host faults where it would with a real GPU. Only the stand-in uses the
 * second mapping.
 *
 * Rules: cuMemFree waits for all work of the context; cuMemFreeAsync frees in stream order. Memory
 * of cuMemAllocAsync and of cuMemCreate belongs to no context: asking for it succeeds, with NULL.
 * cuPointerGetAttribute fails for a pointer that CUDA does not know, while cuPointerGetAttributes
 * returns zeros. Both also fail after a fault, as the documentation allows: in a thread of the
 * context, and for memory that is pinned there. Managed memory is memory that the host may touch.
 * Its type is that of the place where it lies, which is the device, or the host with
 * STANDIN_MANAGED_ON_HOST=1. Host and registered memory have the same address on the device. Memory
 * that the host may only read, or that is registered in part, cannot be registered. With
 * STANDIN_REGISTERS=0 no memory is. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/standin/driver.h"

enum { FLAGS = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP };

static struct block *dti_blocks;
static unsigned long long dti_last_id;

static size_t page_rounded(size_t size)
{
    return (size + 4095) & ~(size_t)4095;
}

struct block *standin_block_locked(CUdeviceptr ptr, size_t size)
{
    for (struct block *block = dti_blocks; block; block = block->next) {
        CUdeviceptr base = (CUdeviceptr)(uintptr_t)block->base;

        if (ptr >= base && ptr - base < block->size && size <= block->size - (ptr - base))
            return block;
    }
    return NULL;
}

void *standin_view(CUdeviceptr ptr, size_t size)
{
    struct block *block;
    void *view = NULL;

    pthread_mutex_lock(&standin_mutex);
    block = standin_block_locked(ptr, size);
    if (block && block->accessible)
        view = block->view + (ptr - (CUdeviceptr)(uintptr_t)block->base);
    pthread_mutex_unlock(&standin_mutex);
    return view;
}

struct block *standin_add_locked(struct block block)
{
    struct block *added = malloc(sizeof(*added));

    *added = block;
    added->id = ++dti_last_id;
    added->next = dti_blocks;
    dti_blocks = added;
    return added;
}

void standin_forget_locked(struct block *block)
{
    struct block **link = &dti_blocks;

    while (*link != block)
        link = &(*link)->next;
    *link = block->next;
    if (block->file >= 0)
        close(block->file);
    free(block);
}

CUresult standin_map(int file, size_t offset, size_t size, void *base, struct block *block)
{
    size_t pages = page_rounded(size);

    block->base =
        mmap(base, pages, PROT_NONE, MAP_SHARED | (base ? MAP_FIXED : 0), file, (off_t)offset);
    block->view = mmap(NULL, pages, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)offset);
    block->file = file;
    block->size = size;
    return block->base == MAP_FAILED || block->view == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY
                                                                  : CUDA_SUCCESS;
}

static CUresult begin(CUcontext *context, const void *out, size_t size)
{
    CUresult result = standin_current(context);

    if (result)
        return result;
    if (!out || !size)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&standin_mutex);
    result = standin_unsafe_locked();
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

static void add(struct block block)
{
    pthread_mutex_lock(&standin_mutex);
    standin_add_locked(block);
    pthread_mutex_unlock(&standin_mutex);
}

CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t size)
{
    struct block block = { .kind = STANDIN_DEVICE, .accessible = true };
    CUresult result = begin(&block.context, ptr, size);
    int file;

    if (result)
        return result;
    if (size > (size_t)standin_setting("STANDIN_MEMORY", 1L << 30))
        return CUDA_ERROR_OUT_OF_MEMORY;
    file = memfd_create("standin-device", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)page_rounded(size)) < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = standin_map(file, 0, size, NULL, &block);
    if (result)
        return result;
    block.device = block.context->device;
    *ptr = (CUdeviceptr)(uintptr_t)block.base;
    add(block);
    return CUDA_SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr *ptr, size_t size, CUstream stream)
{
    CUdevice device;
    int pools = 0;
    CUresult result = standin_refused(__func__);

    if (!result)
        result = cuCtxGetDevice(&device);
    if (!result)
        result = cuDeviceGetAttribute(&pools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, device);
    if (!result && !pools)
        result = CUDA_ERROR_NOT_SUPPORTED;
    if (!result)
        result = cuMemAlloc_v2(ptr, size);
    if (result)
        return result;
    pthread_mutex_lock(&standin_mutex);
    standin_block_locked(*ptr, 1)->pooled = true;
    pthread_mutex_unlock(&standin_mutex);
    return standin_enqueue(stream, NULL, NULL);
}

static CUresult host_touchable(enum standin_kind kind, size_t size, void **ptr)
{
    struct block block = { .kind = kind, .size = size, .file = -1, .accessible = true };
    CUresult result = begin(&block.context, ptr, size);

    if (result)
        return result;
    block.base =
        mmap(NULL, page_rounded(size), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (block.base == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    block.view = block.base;
    block.device = block.context->device;
    *ptr = block.base;
    add(block);
    return CUDA_SUCCESS;
}

CUresult cuMemAllocManaged(CUdeviceptr *ptr, size_t size, unsigned flags)
{
    void *base;
    CUresult result;

    if (standin_setting("STANDIN_LACKS", 0) == CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (flags != CU_MEM_ATTACH_GLOBAL || !ptr)
        return CUDA_ERROR_INVALID_VALUE;
    result = host_touchable(STANDIN_MANAGED, size, &base);
    if (!result)
        *ptr = (CUdeviceptr)(uintptr_t)base;
    return result;
}

CUresult cuMemHostAlloc(void **ptr, size_t size, unsigned flags)
{
    CUresult result = standin_refused(__func__);

    (void)flags;
    if (result)
        return result;
    standin_await_stern();
    standin_log("pid %d pins %zu bytes", (int)getpid(), size);
    return host_touchable(STANDIN_HOST, size, ptr);
}

static void take_away_locked(struct block *block)
{
    munmap(block->base, page_rounded(block->size));
    if (block->view != block->base)
        munmap(block->view, page_rounded(block->size));
    standin_forget_locked(block);
}

void standin_end_pinned_locked(CUcontext context)
{
    struct block *next;

    for (struct block *block = dti_blocks; block; block = next) {
        next = block->next;
        if (block->context == context && block->kind == STANDIN_HOST)
            take_away_locked(block);
        else if (block->context == context && block->kind == STANDIN_PINNED)
            standin_forget_locked(block);
    }
}

/* Waits for the context, then unmaps the allocation if it begins at ptr and is of one of these
 * kinds. */
static CUresult release(const void *ptr, unsigned kinds)
{
    CUcontext context;
    CUresult result = begin(&context, ptr, 1);
    struct block *block;

    if (result)
        return ptr ? result : CUDA_SUCCESS;
    pthread_mutex_lock(&standin_mutex);
    standin_await_context_locked(context);
    block = standin_block_locked((CUdeviceptr)(uintptr_t)ptr, 1);
    if (block && block->base == ptr && (kinds & 1u << block->kind) && !block->imported)
        take_away_locked(block);
    else
        result = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

CUresult cuMemFree_v2(CUdeviceptr ptr)
{
    return release((const void *)(uintptr_t)ptr, 1u << STANDIN_DEVICE | 1u << STANDIN_MANAGED);
}

static void free_block(void *data)
{
    struct block *block;

    pthread_mutex_lock(&standin_mutex);
    block = standin_block_locked(*(CUdeviceptr *)data, 1);
    if (block)
        take_away_locked(block);
    pthread_mutex_unlock(&standin_mutex);
}

CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream stream)
{
    CUdeviceptr *work = malloc(sizeof(*work));

    *work = ptr;
    return standin_enqueue(stream, free_block, work);
}

CUresult cuMemFreeHost(void *ptr)
{
    return release(ptr, 1u << STANDIN_HOST);
}

/* Whether the host may write to all of the range. */
static bool is_writable(uintptr_t from, size_t size)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    uintptr_t at = from, begin, end;
    char line[512], mode[5];

    while (maps && at < from + size && fgets(line, sizeof(line), maps))
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &begin, &end, mode) == 3 && begin <= at &&
            at < end && mode[1] == 'w')
            at = end;
    if (maps)
        fclose(maps);
    return at >= from + size;
}

static bool overlaps_locked(uintptr_t from, size_t size)
{
    for (struct block *block = dti_blocks; block; block = block->next) {
        uintptr_t base = (uintptr_t)block->base;

        if (from < base + block->size && base < from + size)
            return true;
    }
    return false;
}

CUresult cuMemHostRegister_v2(void *ptr, size_t size, unsigned flags)
{
    struct block block = {
        .kind = STANDIN_PINNED,
        .base = ptr,
        .view = ptr,
        .size = size,
        .file = -1,
        .accessible = true,
    };
    CUresult result = begin(&block.context, ptr, size);

    standin_await_stern();
    standin_log("pid %d registers %zu bytes", (int)getpid(), size);
    if (!result)
        result = standin_refused(__func__);
    if (!result && !standin_setting("STANDIN_REGISTERS", 1))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (!result && (flags & ~FLAGS || !is_writable((uintptr_t)ptr, size)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result)
        return result;
    block.device = block.context->device;
    pthread_mutex_lock(&standin_mutex);
    if (overlaps_locked((uintptr_t)ptr, size))
        result = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    else
        standin_add_locked(block);
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

CUresult cuMemHostUnregister(void *ptr)
{
    CUcontext context;
    CUresult result = begin(&context, ptr, 1);
    struct block *block;

    if (result)
        return result;
    pthread_mutex_lock(&standin_mutex);
    block = standin_block_locked((CUdeviceptr)(uintptr_t)ptr, 1);
    if (block && block->base == ptr && block->kind == STANDIN_PINNED)
        standin_forget_locked(block);
    else
        result = CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *ptr, unsigned flags)
{
    CUresult result = standin_refused(__func__);
    struct block *block;
    CUcontext context;

    if (!result)
        result = standin_current(&context);
    if (result)
        return result;
    pthread_mutex_lock(&standin_mutex);
    block = standin_block_locked((CUdeviceptr)(uintptr_t)ptr, 1);
    pthread_mutex_unlock(&standin_mutex);
    if (flags || !block || (block->kind != STANDIN_HOST && block->kind != STANDIN_PINNED))
        return CUDA_ERROR_INVALID_VALUE;
    *device = (CUdeviceptr)(uintptr_t)ptr;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr ptr)
{
    struct block *block;
    CUresult result = CUDA_SUCCESS;

    pthread_mutex_lock(&standin_mutex);
    block = standin_block_locked(ptr, 1);
    if (!block)
        result = CUDA_ERROR_NOT_FOUND;
    if (block && base)
        *base = (CUdeviceptr)(uintptr_t)block->base;
    if (block && size)
        *size = block->size;
    pthread_mutex_unlock(&standin_mutex);
    return result;
}

CUresult cuMemGetInfo_v2(size_t *available, size_t *total)
{
    CUcontext context;
    CUresult result = standin_current(&context);

    if (result)
        return result;
    *available = *total = (size_t)standin_setting("STANDIN_MEMORY", 1L << 30);
    pthread_mutex_lock(&standin_mutex);
    for (struct block *block = dti_blocks; block; block = block->next)
        if (block->kind <= STANDIN_MANAGED && block->device == context->device)
            *available -= block->size < *available ? block->size : *available;
    pthread_mutex_unlock(&standin_mutex);
    return CUDA_SUCCESS;
}

static bool lies_on_device(const struct block *block)
{
    return block->kind < STANDIN_MANAGED ||
           (block->kind == STANDIN_MANAGED && !standin_setting("STANDIN_MANAGED_ON_HOST", 0));
}

static size_t attribute_size(CUpointer_attribute attribute)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
        return sizeof(int);
    default:
        return sizeof(unsigned long long);
    }
}

static CUresult attribute_of(const struct block *block, CUpointer_attribute attribute,
                             CUdeviceptr ptr, unsigned long long *value)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *value = block->kind == STANDIN_MAPPED || block->pooled ? 0 : (uintptr_t)block->context;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *value = lies_on_device(block) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *value = ptr;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *value = ptr;
        return block->kind < STANDIN_MANAGED ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        if (standin_setting("STANDIN_NUMBERS", 1) == 0)
            return CUDA_ERROR_NOT_SUPPORTED;
        *value = block->id;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *value = block->kind == STANDIN_MANAGED;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *value = (unsigned)block->device;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        *value = block->kind == STANDIN_DEVICE && !block->imported && !block->pooled;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *value = (uintptr_t)block->base;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *value = block->size;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *value = 1;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult ask(void *value, CUpointer_attribute attribute, CUdeviceptr ptr, bool quiet)
{
    CUcontext context;
    CUresult result = standin_current(&context);
    unsigned long long found = 0;
    struct block *block;

    if (result && result != CUDA_ERROR_INVALID_CONTEXT && result != CUDA_ERROR_CONTEXT_IS_DESTROYED)
        return result;
    pthread_mutex_lock(&standin_mutex);
    block = standin_block_locked(ptr, 1);
    result = block ? attribute_of(block, attribute, ptr, &found) : CUDA_ERROR_INVALID_VALUE;
    if (!result && block->kind == STANDIN_HOST)
        result = standin_fault_of(block->context);
    pthread_mutex_unlock(&standin_mutex);
    if (!result)
        memcpy(value, &found, attribute_size(attribute));
    if (result == CUDA_ERROR_INVALID_VALUE && !quiet)
        standin_log("pid %d asks about memory that CUDA does not know", (int)getpid());
    return result;
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    return ask(value, attribute, ptr, false);
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **values,
                                CUdeviceptr ptr)
{
    CUresult result = standin_ready();

    for (unsigned i = 0; i < count && !result; i++) {
        result = ask(values[i], attributes[i], ptr, true);
        if (result == CUDA_ERROR_ILLEGAL_ADDRESS)
            break;
        if (result)
            memset(values[i], 0, attribute_size(attributes[i]));
        result = CUDA_SUCCESS;
    }
    return result;
}
