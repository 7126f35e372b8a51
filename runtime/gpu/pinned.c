#include "runtime/gpu/pinned.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "runtime/gpu/cuda.h"

enum {
    LEAST = 64 * 1024,
    KEPT_MOST = 64 * 1024 * 1024, /* of bytes that are not in use */
};

struct block {
    struct block *next;
    void *memory;
    size_t bytes; /* a power of two */
    bool used;
};

static struct {
    pthread_mutex_t mutex;
    struct block *all;
    size_t kept;
} dti_pinned = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static size_t round_up(size_t bytes)
{
    return bytes <= LEAST ? LEAST : (size_t)1 << (64 - __builtin_clzl(bytes - 1));
}

static struct block *find_free(size_t bytes)
{
    for (struct block *b = dti_pinned.all; b; b = b->next) {
        if (!b->used && b->bytes == bytes)
            return b;
    }
    return NULL;
}

static struct block *make(size_t bytes)
{
    struct block *b = calloc(1, sizeof *b);

    if (!b)
        return NULL;
    if (dt_cuda()->cuMemHostAlloc(&b->memory, bytes, CU_MEMHOSTALLOC_PORTABLE)) {
        free(b);
        return NULL;
    }
    b->bytes = bytes;
    b->next = dti_pinned.all;
    dti_pinned.all = b;
    dti_pinned.kept += bytes;
    return b;
}

void *dt_pinned_take(size_t bytes)
{
    size_t room = round_up(bytes);
    struct block *b;

    if (room < bytes)
        return NULL;
    pthread_mutex_lock(&dti_pinned.mutex);
    b = find_free(room);
    if (!b)
        b = make(room);
    if (b) {
        b->used = true;
        dti_pinned.kept -= b->bytes;
    }
    pthread_mutex_unlock(&dti_pinned.mutex);
    return b ? b->memory : NULL;
}

static void give_locked(struct block **at)
{
    struct block *b = *at;

    b->used = false;
    if (dti_pinned.kept + b->bytes <= KEPT_MOST) {
        dti_pinned.kept += b->bytes;
        return;
    }
    *at = b->next;
    dt_cuda()->cuMemFreeHost(b->memory);
    free(b);
}

void dt_pinned_give(void *memory)
{
    struct block **at = &dti_pinned.all;

    if (!memory)
        return;
    pthread_mutex_lock(&dti_pinned.mutex);
    while (*at && (*at)->memory != memory)
        at = &(*at)->next;
    if (*at)
        give_locked(at);
    pthread_mutex_unlock(&dti_pinned.mutex);
}
