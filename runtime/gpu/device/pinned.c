#include "runtime/gpu/device/pinned.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "runtime/gpu/device/life.h"
#include "runtime/gpu/device/provision.h"
#include "runtime/gpu/nvidia/cuda.h"

enum {
    LEAST = 64 * 1024,
    KEPT_MOST = 64 * 1024 * 1024, /* the most unused bytes that are kept */
};

struct block {
    struct block *next;
    void *memory;
    uint64_t allocation; /* the memory's number (life.h) */
    size_t bytes;        /* a power of two */
    bool used;
    const void *owner; /* the owner that it is reserved for; NULL: none */
};

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t freed;
    struct block *all;
    size_t kept;
    unsigned holders; /* while this is not 0, nothing is freed */
    unsigned freeing; /* the number of threads that are freeing */
} dti_pinned = { .mutex = PTHREAD_MUTEX_INITIALIZER, .freed = PTHREAD_COND_INITIALIZER };

static size_t round_up(size_t bytes)
{
    return bytes <= LEAST ? LEAST : (size_t)1 << (64 - __builtin_clzl(bytes - 1));
}

static struct block *find_free(size_t bytes)
{
    for (struct block *b = dti_pinned.all; b; b = b->next) {
        if (!b->used && !b->owner && b->bytes == bytes)
            return b;
    }
    return NULL;
}

/* Also finds a block in use. */
static struct block *find_reserved(size_t bytes, const void *owner)
{
    for (struct block *b = dti_pinned.all; b; b = b->next) {
        if (b->owner == owner && b->bytes >= bytes)
            return b;
    }
    return NULL;
}

static CUresult pin(struct block *b)
{
    CUresult result = dt_cuda()->cuMemHostAlloc(&b->memory, b->bytes, CU_MEMHOSTALLOC_PORTABLE);

    if (!result)
        b->allocation = dt_gpu_allocation(b->memory);
    return result;
}

/* Called without the lock: the driver may wait for work of a thread that needs the lock. */
static CUresult make_block(struct block **block, size_t bytes)
{
    struct block *b;
    CUresult result;

    if (!dt_gpu_provision_begin())
        return CUDA_ERROR_NOT_READY;
    b = calloc(1, sizeof *b);
    if (b)
        b->bytes = bytes;
    result = b ? pin(b) : DT_CUDA_NO_HOST_MEMORY;
    dt_gpu_provision_end();
    if (result)
        free(b);
    else
        *block = b;
    return result;
}

/* Drops the memory that was freed with the context in which it was pinned. */
static void forget_gone_locked(void)
{
    struct block **at = &dti_pinned.all;

    while (*at) {
        struct block *b = *at;

        if (b->used || dt_gpu_is_there(b->memory, b->allocation)) {
            at = &b->next;
            continue;
        }
        *at = b->next;
        dti_pinned.kept -= b->bytes;
        free(b);
    }
}

static void add_locked(struct block *b)
{
    b->next = dti_pinned.all;
    dti_pinned.all = b;
}

static struct block *use_locked(size_t room, const void *owner)
{
    struct block *b = find_reserved(room, owner);

    if (!b || b->used)
        b = find_free(room);
    if (b) {
        b->used = true;
        dti_pinned.kept -= b->bytes;
    }
    return b;
}

static void add_block(struct block *b)
{
    pthread_mutex_lock(&dti_pinned.mutex);
    add_locked(b);
    pthread_mutex_unlock(&dti_pinned.mutex);
}

void *dt_pinned_take(size_t bytes, const void *owner)
{
    size_t room = round_up(bytes);
    struct block *b;

    if (room < bytes)
        return NULL;
    pthread_mutex_lock(&dti_pinned.mutex);
    forget_gone_locked();
    b = use_locked(room, owner);
    pthread_mutex_unlock(&dti_pinned.mutex);
    if (b)
        return b->memory;
    if (make_block(&b, room))
        return NULL;
    b->used = true;
    add_block(b);
    return b->memory;
}

static struct block *find_excess_locked(void)
{
    struct block **at = &dti_pinned.all, *b;

    if (dti_pinned.holders || dti_pinned.kept <= KEPT_MOST)
        return NULL;
    while (*at && ((*at)->used || (*at)->owner))
        at = &(*at)->next;
    b = *at;
    if (!b)
        return NULL;
    *at = b->next;
    dti_pinned.kept -= b->bytes;
    dti_pinned.freeing++;
    return b;
}

/* Called without the lock, since the driver waits for the whole device. */
static void free_unlocked(struct block *b)
{
    pthread_mutex_unlock(&dti_pinned.mutex);
    dt_cuda()->cuMemFreeHost(b->memory);
    free(b);
    pthread_mutex_lock(&dti_pinned.mutex);
    dti_pinned.freeing--;
    pthread_cond_broadcast(&dti_pinned.freed);
}

void dt_pinned_give(void *memory, bool may_free)
{
    struct block *b;

    if (!memory)
        return;
    pthread_mutex_lock(&dti_pinned.mutex);
    b = dti_pinned.all;
    while (b && b->memory != memory)
        b = b->next;
    if (b) {
        b->used = false;
        dti_pinned.kept += b->bytes;
    }
    while (may_free && (b = find_excess_locked()))
        free_unlocked(b);
    pthread_mutex_unlock(&dti_pinned.mutex);
}

void dt_pinned_hold(void)
{
    pthread_mutex_lock(&dti_pinned.mutex);
    dti_pinned.holders++;
    while (dti_pinned.freeing)
        pthread_cond_wait(&dti_pinned.freed, &dti_pinned.mutex);
    pthread_mutex_unlock(&dti_pinned.mutex);
}

void dt_pinned_let_go(void)
{
    pthread_mutex_lock(&dti_pinned.mutex);
    dti_pinned.holders--;
    pthread_mutex_unlock(&dti_pinned.mutex);
}

/* Makes the owner's memory available to all. */
static void release_locked(const void *owner)
{
    for (struct block *b = dti_pinned.all; b; b = b->next) {
        if (b->owner == owner)
            b->owner = NULL;
    }
}

void dt_pinned_release(const void *owner)
{
    pthread_mutex_lock(&dti_pinned.mutex);
    release_locked(owner);
    pthread_mutex_unlock(&dti_pinned.mutex);
}

/* Returns whether the owner has enough now. */
static bool reserve_locked(size_t room, const void *owner)
{
    struct block *b = find_reserved(room, owner) ? NULL : find_free(room);

    if (b) {
        release_locked(owner);
        b->owner = owner;
    }
    return find_reserved(room, owner) != NULL;
}

CUresult dt_pinned_reserve(size_t bytes, const void *owner)
{
    size_t room = round_up(bytes);
    struct block *b;
    CUresult result;
    bool enough;

    if (room < bytes)
        return DT_CUDA_NO_HOST_MEMORY;
    pthread_mutex_lock(&dti_pinned.mutex);
    forget_gone_locked();
    enough = reserve_locked(room, owner);
    pthread_mutex_unlock(&dti_pinned.mutex);
    result = enough ? CUDA_SUCCESS : make_block(&b, room);
    if (enough || result)
        return result;
    pthread_mutex_lock(&dti_pinned.mutex);
    release_locked(owner);
    b->owner = owner;
    add_locked(b);
    dti_pinned.kept += b->bytes;
    pthread_mutex_unlock(&dti_pinned.mutex);
    return CUDA_SUCCESS;
}
