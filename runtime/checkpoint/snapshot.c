#include "runtime/checkpoint/snapshot.h"

#include <sys/mman.h>

#include "runtime/base/copy.h"
#include "runtime/base/error.h"
#include "runtime/wire/page.h"

enum { CACHE_LINE = 64 };

static size_t to_lines(size_t bytes)
{
    return (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
}

/* The bytes of all copies of buffers in GPU memory, or of all others. SIZE_MAX: too many.
 * Registered buffers may overlap, so their sum may exceed what memory can hold. */
static size_t add_up(const struct dt_buffers *buffers, bool on_gpu)
{
    size_t sum = 0;

    for (uint32_t i = 0; i < buffers->n; i++) {
        const struct dt_buffer *b = &buffers->v[i];

        if ((b->device != NULL) != on_gpu)
            continue;
        if (__builtin_add_overflow(sum, to_lines(b->bytes), &sum) || sum > PTRDIFF_MAX)
            return SIZE_MAX;
    }
    return sum;
}

static dt_result_t name_copies(struct dt_snapshot *s, const struct dt_buffers *buffers)
{
    uint8_t *on_gpu = s->memory, *others = s->memory + s->from_gpu.bytes;

    for (uint32_t i = 0; i < buffers->n; i++) {
        const struct dt_buffer *b = &buffers->v[i];
        uint8_t **at = b->device ? &on_gpu : &others;

        if (dt_buffers_add(&s->buffers, b->name, *at, b->bytes) != 0)
            return DT_ERR_NOMEM;
        *at += to_lines(b->bytes);
    }
    return DT_OK;
}

/* A child process does not get the memory. Otherwise each save would copy pages that a child
 * shares, and the GPU would write to pages of the child. */
static dt_result_t map_memory(struct dt_snapshot *s)
{
    void *memory = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return DT_ERR_NOMEM;
    madvise(memory, s->bytes, MADV_DONTFORK);
    s->memory = memory;
    return DT_OK;
}

static dt_result_t open_snapshot(struct dt_snapshot *s, const struct dt_buffers *buffers)
{
    size_t on_gpu = add_up(buffers, true), others = add_up(buffers, false);

    if (on_gpu == SIZE_MAX || others == SIZE_MAX)
        return DT_ERR_NOMEM;
    on_gpu = dt_page_round_up(on_gpu);
    s->bytes = on_gpu + others;
    if (s->bytes && map_memory(s) != DT_OK)
        return DT_ERR_NOMEM;
    s->from_gpu = (struct dt_gpu_hostmem){ .memory = s->memory, .bytes = on_gpu };
    return name_copies(s, buffers);
}

void dt_snapshot_free(struct dt_snapshot *s)
{
    dt_gpu_hostmem_release(&s->from_gpu);
    if (s->memory && !s->from_gpu.busy)
        munmap(s->memory, s->bytes);
    dt_buffers_free(&s->buffers);
    *s = (struct dt_snapshot){ 0 };
}

static dt_result_t copy_buffer(struct dt_snapshot *s, const struct dt_buffer *to,
                               const struct dt_buffer *from)
{
    if (from->device)
        return from->device->copy(from->data, from->bytes, &s->from_gpu, to->data);
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
        result = copy_buffer(s, &s->buffers.v[i], &buffers->v[i]);
    return result;
}
