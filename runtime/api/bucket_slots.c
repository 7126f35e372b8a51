#include "runtime/api/bucket_slots.h"

#include <strings.h>

#include "runtime/api/context.h"

enum {
    SETTLED = 8, /* the memory is allocated before this task */
    /* The most that the memory holds: slots, bytes for each rank, and bytes for all ranks, since
     * every rank maps all of it. */
    SLOTS_MAX = 8,
    RANK_BYTES_MAX = 64 * 1024 * 1024,
    ALL_BYTES_MAX = 8 * RANK_BYTES_MAX,
};

/* Stores the number of ranks if all of them share this host and there are several; else 0. */
static void visit_sharing(struct dt_comm *c, void *ranks)
{
    *(uint32_t *)ranks = c->nodes == 1 && c->size > 1 && !c->announce ? (uint32_t)c->size : 0;
}

static uint32_t slots_for(size_t bytes, uint32_t ranks)
{
    size_t most = ALL_BYTES_MAX / ranks < RANK_BYTES_MAX ? ALL_BYTES_MAX / ranks : RANK_BYTES_MAX;

    return most / bytes < SLOTS_MAX ? (uint32_t)(most / bytes) : SLOTS_MAX;
}

/* The allocation has the same outcome on all ranks. If it ends the communicator, the next call
 * reports that. */
void dt_bucket_slots_count_task(struct dt_bucket_slots *s, dt_comm_t *comm)
{
    uint32_t ranks = 0, n;
    void *memory;

    if (s->tasks == SETTLED)
        return;
    (void)dt_context_visit("dt_bucket_push", comm, visit_sharing, &ranks);
    if (!ranks || ++s->tasks < SETTLED)
        return;
    n = slots_for(s->bytes, ranks);
    if (n < 2 || dt_mem_alloc(comm, n * s->bytes, &memory) != DT_OK)
        return;
    s->n = n;
    s->free = (1U << n) - 1;
    atomic_store_explicit(&s->memory, memory, memory_order_release);
}

static uint8_t *memory_of(const struct dt_bucket_slots *s)
{
    return atomic_load_explicit(&s->memory, memory_order_acquire);
}

uint8_t *dt_bucket_slots_take(struct dt_bucket_slots *s)
{
    uint8_t *memory = memory_of(s);
    int i = memory ? ffs((int)s->free) - 1 : -1;

    if (i < 0)
        return NULL;
    s->free &= ~(1U << i);
    return memory + (size_t)i * s->bytes;
}

bool dt_bucket_slots_exist(const struct dt_bucket_slots *s)
{
    return memory_of(s) != NULL;
}

bool dt_bucket_slots_contain(const struct dt_bucket_slots *s, const uint8_t *data)
{
    const uint8_t *memory = memory_of(s);

    for (uint32_t i = 0; memory && i < s->n; i++) {
        if (data == memory + i * s->bytes)
            return true;
    }
    return false;
}

bool dt_bucket_slots_release(struct dt_bucket_slots *s, const uint8_t *data)
{
    if (!dt_bucket_slots_contain(s, data))
        return false;
    s->free |= 1U << ((size_t)(data - memory_of(s)) / s->bytes);
    return true;
}

void dt_bucket_slots_free(struct dt_bucket_slots *s)
{
    dt_mem_free(s->memory);
}
