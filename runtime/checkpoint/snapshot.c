#include "runtime/checkpoint/snapshot.h"

#include <sys/mman.h>

#include "runtime/base/copy.h"
#include "runtime/base/error.h"

enum { ALIGNMENT = 64 }; /* a cache line */

static size_t room_of(const struct dt_buffer *b)
{
    return (b->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Registered buffers may overlap, so their sum may exceed what memory can hold. */
static size_t add_up(const struct dt_buffers *buffers)
{
    size_t sum = 0;

    for (uint32_t i = 0; i < buffers->n; i++)
        if (__builtin_add_overflow(sum, room_of(&buffers->v[i]), &sum))
            return SIZE_MAX;
    return sum;
}

static dt_result_t name_copies(struct dt_snapshot *s, const struct dt_buffers *buffers)
{
    uint8_t *at = s->memory;

    for (uint32_t i = 0; i < buffers->n; i++) {
        const struct dt_buffer *b = &buffers->v[i];

        if (dt_buffers_add(&s->buffers, b->name, at, b->bytes) != 0)
            return DT_ERR_NOMEM;
        at += room_of(b);
    }
    return DT_OK;
}

/* A child process does not get the memory. Otherwise each save would copy pages that a child
 * shares. */
static dt_result_t open_snapshot(struct dt_snapshot *s, const struct dt_buffers *buffers)
{
    size_t bytes = add_up(buffers);
    void *memory = NULL;

    if (bytes)
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return DT_ERR_NOMEM;
    s->memory = memory;
    s->bytes = bytes;
    if (memory)
        madvise(memory, bytes, MADV_DONTFORK);
    return name_copies(s, buffers);
}

void dt_snapshot_free(struct dt_snapshot *s)
{
    if (s->memory)
        munmap(s->memory, s->bytes);
    dt_buffers_free(&s->buffers);
    *s = (struct dt_snapshot){ 0 };
}

static dt_result_t copy_chunk(void *at, void *chunk, size_t n)
{
    uint8_t **to = at;

    dt_copy(*to, chunk, n);
    *to += n;
    return DT_OK;
}

static dt_result_t copy_buffer(const struct dt_buffer *to, const struct dt_buffer *from)
{
    uint8_t *at = to->data;

    if (from->device)
        return from->device->read(from->data, from->bytes, copy_chunk, &at);
    if (from->bytes)
        dt_copy(to->data, from->data, from->bytes);
    return DT_OK;
}

dt_result_t dt_snapshot_take(struct dt_snapshot *s, const struct dt_buffers *buffers)
{
    dt_result_t result = DT_OK;

    if (s->buffers.n == 0 && open_snapshot(s, buffers) != DT_OK) {
        dt_snapshot_free(s);
        return dt_fail(DT_ERR_NOMEM, "out of memory for a copy of the registered buffers");
    }
    for (uint32_t i = 0; i < buffers->n && result == DT_OK; i++)
        result = copy_buffer(&s->buffers.v[i], &buffers->v[i]);
    return result;
}
