/* Work for streams: copies, fills, words that are written and awaited, host functions.
 *
 * Rules ("API synchronization behavior"): a copy from pageable memory has read it by the time the
 * call returns. A copy to pageable memory is complete when the call returns, even an asynchronous
 * one. Asynchronous copies of pinned memory return at once. A synchronous copy within the device
 * does not wait, and neither does a fill of device memory. A host function must not call the
 * driver. Words that a stream writes or waits for must not be managed memory. */
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/standin/driver.h"

enum place { PAGEABLE, PINNED, ON_DEVICE, UNKNOWN };

struct copy {
    char *to;
    const char *from;
    size_t size;
    char staged[];
};

static enum place resolve(uintptr_t ptr, size_t size, char **at)
{
    struct block *block;
    enum place place = PAGEABLE;

    pthread_mutex_lock(&standin_mutex);
    block = standin_block_locked(ptr, size ? size : 1);
    *at = (char *)ptr;
    if (block) {
        place = !block->accessible ? UNKNOWN : block->kind < STANDIN_HOST ? ON_DEVICE : PINNED;
        *at = block->view + (ptr - (uintptr_t)block->base);
    } else if (standin_block_locked(ptr, 1)) {
        place = UNKNOWN; /* the range reaches past the end */
    }
    pthread_mutex_unlock(&standin_mutex);
    return place;
}

static void do_copy(void *data)
{
    struct copy *copy = data;

    memmove(copy->to, copy->from ? copy->from : copy->staged, copy->size);
}

static CUresult copy(uintptr_t to, uintptr_t from, size_t size, CUstream stream, bool synchronous)
{
    char *into, *out_of;
    enum place target = resolve(to, size, &into), source = resolve(from, size, &out_of);
    bool waits =
        target == PAGEABLE || (synchronous && !(target == ON_DEVICE && source == ON_DEVICE));
    bool stages = source == PAGEABLE && !waits;
    struct copy *work;
    CUresult result;

    if (target == UNKNOWN || source == UNKNOWN)
        return CUDA_ERROR_INVALID_VALUE;
    work = malloc(sizeof(*work) + (stages ? size : 0));
    *work = (struct copy){ .to = into, .from = stages ? NULL : out_of, .size = size };
    if (stages)
        memcpy(work->staged, out_of, size);
    result = standin_enqueue(stream, do_copy, work);
    if (result)
        return result;
    return waits ? standin_sync(stream) : CUDA_SUCCESS;
}

/* Words that streams write or wait for must not be in managed memory. */
static bool is_managed(CUdeviceptr ptr)
{
    struct block *block;
    bool managed;

    pthread_mutex_lock(&standin_mutex);
    block = standin_block_locked(ptr, 1);
    managed = block && block->kind == STANDIN_MANAGED;
    pthread_mutex_unlock(&standin_mutex);
    return managed;
}

/* Where the name of the call says "device", the driver must know the memory. */
static bool known(CUdeviceptr ptr, size_t size)
{
    char *at;
    enum place place = resolve((uintptr_t)ptr, size, &at);

    return place == ON_DEVICE || place == PINNED;
}

static CUresult checked(bool valid, uintptr_t to, uintptr_t from, size_t size, CUstream stream,
                        bool synchronous)
{
    CUresult result = standin_ready();

    if (result)
        return result;
    return valid ? copy(to, from, size, stream, synchronous) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size)
{
    return checked(true, to, from, size, CU_STREAM_LEGACY, true);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)
{
    return checked(true, to, from, size, stream, false);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size)
{
    return checked(known(to, size), to, (uintptr_t)from, size, CU_STREAM_LEGACY, true);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream stream)
{
    return checked(known(to, size), to, (uintptr_t)from, size, stream, false);
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size)
{
    return checked(known(from, size), (uintptr_t)to, from, size, CU_STREAM_LEGACY, true);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream stream)
{
    CUresult result = standin_refused(__func__);

    return result ? result : checked(known(from, size), (uintptr_t)to, from, size, stream, false);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size)
{
    return checked(known(to, size) && known(from, size), to, from, size, CU_STREAM_LEGACY, true);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)
{
    return checked(known(to, size) && known(from, size), to, from, size, stream, false);
}

struct fill {
    char *to;
    size_t count, width;
    unsigned value;
};

static void do_fill(void *data)
{
    struct fill *fill = data;
    size_t bytes = fill->count * fill->width, done = fill->width;

    if (!bytes)
        return;
    memcpy(fill->to, &fill->value, fill->width);
    for (size_t more; done < bytes; done += more) {
        more = done < bytes - done ? done : bytes - done;
        memcpy(fill->to + done, fill->to, more);
    }
}

static CUresult fill(CUdeviceptr ptr, unsigned value, size_t width, size_t count, CUstream stream)
{
    struct fill *work;
    CUresult result = standin_ready();
    char *to;

    if (result)
        return result;
    if (!known(ptr, width * count))
        return CUDA_ERROR_INVALID_VALUE;
    resolve((uintptr_t)ptr, width * count, &to);
    work = malloc(sizeof(*work));
    *work = (struct fill){ .to = to, .count = count, .width = width, .value = value };
    return standin_enqueue(stream, do_fill, work);
}

CUresult cuMemsetD8_v2(CUdeviceptr ptr, unsigned char value, size_t count)
{
    return fill(ptr, value, 1, count, CU_STREAM_LEGACY);
}

CUresult cuMemsetD8Async(CUdeviceptr ptr, unsigned char value, size_t count, CUstream stream)
{
    return fill(ptr, value, 1, count, stream);
}

CUresult cuMemsetD32_v2(CUdeviceptr ptr, unsigned value, size_t count)
{
    return fill(ptr, value, 4, count, CU_STREAM_LEGACY);
}

CUresult cuMemsetD32Async(CUdeviceptr ptr, unsigned value, size_t count, CUstream stream)
{
    return fill(ptr, value, 4, count, stream);
}

struct word {
    char *at;
    uint64_t value;
    unsigned flags;
    bool wide;
};

static uint64_t load_word(const struct word *word)
{
    return word->wide ? atomic_load((_Atomic uint64_t *)(void *)word->at)
                      : atomic_load((_Atomic uint32_t *)(void *)word->at);
}

static bool is_awaited(const struct word *word, uint64_t now)
{
    uint64_t mask = word->wide ? UINT64_MAX : UINT32_MAX;

    switch (word->flags) {
    case CU_STREAM_WAIT_VALUE_EQ:
        return now == word->value;
    case CU_STREAM_WAIT_VALUE_AND:
        return now & word->value;
    case CU_STREAM_WAIT_VALUE_NOR:
        return ~(now | word->value) & mask;
    default: /* GEQ, which compares cyclically */
        return word->wide ? (int64_t)(now - word->value) >= 0
                          : (int32_t)((uint32_t)now - (uint32_t)word->value) >= 0;
    }
}

static void write_word(void *data)
{
    struct word *word = data;

    if (word->wide)
        atomic_store((_Atomic uint64_t *)(void *)word->at, word->value);
    else
        atomic_store((_Atomic uint32_t *)(void *)word->at, (uint32_t)word->value);
}

static void await_word(void *data)
{
    for (useconds_t nap = 50; !is_awaited(data, load_word(data)); nap += nap < 1000)
        usleep(nap);
}

/* The number of CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1, which drivers no longer report,
 * stands for the 32-bit operations. */
static bool has_word_operations(bool wide)
{
    long lacks = standin_setting("STANDIN_LACKS", 0);

    return lacks != 92 && !(wide && lacks == CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS);
}

static CUresult put_word(CUstream stream, CUhostFn function, CUdeviceptr ptr, struct word word)
{
    CUresult result = standin_ready();
    size_t size = word.wide ? 8 : 4;
    struct word *work;

    if (result)
        return result;
    if (!has_word_operations(word.wide))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (ptr % size || word.flags > CU_STREAM_WAIT_VALUE_NOR || !known(ptr, size) || is_managed(ptr))
        return CUDA_ERROR_INVALID_VALUE;
    resolve((uintptr_t)ptr, size, &word.at);
    work = malloc(sizeof(*work));
    *work = word;
    return standin_enqueue(stream, function, work);
}

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr ptr, uint32_t value, unsigned flags)
{
    CUresult result = standin_refused(__func__);

    if (result)
        return result;
    return put_word(stream, write_word, ptr, (struct word){ .value = value, .flags = flags });
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr ptr, uint64_t value, unsigned flags)
{
    struct word word = { .value = value, .flags = flags, .wide = true };

    return put_word(stream, write_word, ptr, word);
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr ptr, uint32_t value, unsigned flags)
{
    CUresult result = standin_refused(__func__);

    if (result)
        return result;
    return put_word(stream, await_word, ptr, (struct word){ .value = value, .flags = flags });
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr ptr, uint64_t value, unsigned flags)
{
    struct word word = { .value = value, .flags = flags, .wide = true };

    return put_word(stream, await_word, ptr, word);
}

struct host_call {
    CUhostFn function;
    void *data;
};

static void call_host(void *data)
{
    struct host_call *call = data;

    standin_in_host_function(true);
    call->function(call->data);
    standin_in_host_function(false);
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data)
{
    CUresult result = standin_ready();
    struct host_call *call;

    if (result)
        return result;
    call = malloc(sizeof(*call));
    *call = (struct host_call){ function, data };
    return standin_enqueue(stream, call_host, call);
}
