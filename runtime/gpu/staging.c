#include "runtime/gpu/staging.h"

#include "runtime/comm/collective.h"
#include "runtime/gpu/device/copies.h"
#include "runtime/gpu/devicecall.h"
#include "runtime/gpu/extents.h"
#include "runtime/gpu/gpu.h"
#include "runtime/gpu/nvidia/cuda.h"
#include "runtime/gpu/operation.h"
#include "runtime/kernels/dtype.h"

/* ---- copies ---- */

static dt_result_t await_copy(struct dt_comm *c, int slot, CUresult queued)
{
    const struct dt_gpu_copies *s = c->gpu->copies;

    return queued ? dt_gpu_fail(c, s->failed, queued) : dt_gpu_await_event(c, s->copied[slot]);
}

/* ---- in chunks ---- */

struct chunks {
    struct dt_comm *c;
    const struct dt_operation *o;
    const uint8_t *in; /* NULL if this rank gives nothing */
    uint8_t *out;      /* NULL if this rank takes nothing */
    size_t each;       /* elements of a chunk */
    size_t n;
    uint8_t *slots[DT_GPU_COPY_SLOTS];
};

static bool goes_in_chunks(const struct dt_operation *o)
{
    enum dt_call_kind kind = o->kind->call;

    return (kind == DT_CALL_ALL_REDUCE && o->op != DT_ADASUM) || kind == DT_CALL_BROADCAST ||
           kind == DT_CALL_REDUCE;
}

static size_t count_of(const struct chunks *ch, size_t i)
{
    size_t left = ch->o->count - i * ch->each;

    return left < ch->each ? left : ch->each;
}

static CUresult fetch_chunk(struct chunks *ch, size_t i)
{
    size_t size = dt_dtype_size(ch->o->dtype);
    const uint8_t *from = ch->in ? ch->in + i * ch->each * size : NULL;
    int slot = (int)(i % DT_GPU_COPY_SLOTS);

    return dt_gpu_copies_fetch(ch->c->gpu->copies, slot, ch->slots[slot], from,
                               ch->in ? count_of(ch, i) * size : 0);
}

static dt_result_t make_chunk(struct chunks *ch, size_t i)
{
    struct dt_operation chunk = *ch->o;
    uint8_t *slot = ch->slots[i % DT_GPU_COPY_SLOTS];

    chunk.in = chunk.out = slot;
    chunk.count = count_of(ch, i);
    if (chunk.how.residual)
        chunk.how.residual += i * ch->each;
    return chunk.kind->make(ch->c, &chunk);
}

static CUresult store_chunk(struct chunks *ch, size_t i)
{
    size_t size = dt_dtype_size(ch->o->dtype);
    int slot = (int)(i % DT_GPU_COPY_SLOTS);

    return dt_gpu_copies_store(ch->c->gpu->copies, slot,
                               ch->out ? ch->out + i * ch->each * size : NULL, ch->slots[slot],
                               ch->out ? count_of(ch, i) * size : 0);
}

/* Copies the next chunk while the call for the current one runs. The stream orders a copy into a
 * slot after the copy out of it. */
static dt_result_t make_chunks(struct chunks *ch)
{
    CUresult queued = fetch_chunk(ch, 0);
    dt_result_t r = DT_OK;

    for (size_t i = 0; r == DT_OK && i < ch->n; i++) {
        r = await_copy(ch->c, (int)(i % DT_GPU_COPY_SLOTS), queued);
        queued = r == DT_OK && i + 1 < ch->n ? fetch_chunk(ch, i + 1) : CUDA_SUCCESS;
        if (r == DT_OK)
            r = make_chunk(ch, i);
        if (r == DT_OK && !queued)
            queued = store_chunk(ch, i);
    }
    return r == DT_OK ? await_copy(ch->c, (int)((ch->n - 1) % DT_GPU_COPY_SLOTS), queued) : r;
}

/* The other ranks compare the program's call, not its chunks. */
static dt_result_t match_call(const struct chunks *ch)
{
    const struct dt_operation *o = ch->o;

    return ch->c->announce || ch->n == 1 ? DT_OK
                                         : dt_comm_match(ch->c, o->kind->call, dt_gpu_call(o));
}

static dt_result_t make_in_chunks(struct dt_comm *c, const struct dt_operation *o, uint8_t *pinned)
{
    struct dt_extents e = dt_extents_of(o, c->rank, c->size);
    struct chunks ch = { .c = c, .o = o, .each = DT_GPU_COPY_CHUNK / dt_dtype_size(o->dtype) };
    const void *in = o->kind->call == DT_CALL_BROADCAST ? o->out : o->in;
    dt_result_t r;

    ch.in = e.in ? in : NULL;
    ch.out = e.out ? o->out : NULL;
    ch.n = (o->count + ch.each - 1) / ch.each;
    ch.slots[0] = pinned;
    ch.slots[1] = pinned + (o->count < ch.each ? 0 : DT_GPU_COPY_CHUNK);
    r = match_call(&ch);
    return r == DT_OK ? make_chunks(&ch) : r;
}

/* ---- whole ---- */

/* Positions in pinned memory: overlapping buffers keep their distance, and others have different
 * positions even if the input has no elements, since one position would mean "in place". */
struct mirror {
    struct dt_extents bytes;
    size_t in_at, out_at, total;
};

static struct mirror mirror_of(const struct dt_operation *o, struct dt_extents e)
{
    struct mirror m = { .bytes = e, .out_at = e.in ? (e.in + 63) / 64 * 64 : 64 };
    uintptr_t in = (uintptr_t)o->in, out = (uintptr_t)o->out;

    if (dt_buffers_overlap(o->in, e.in, o->out, e.out)) {
        m.in_at = in < out ? 0 : in - out;
        m.out_at = in < out ? out - in : 0;
    }
    m.total = m.in_at + e.in > m.out_at + e.out ? m.in_at + e.in : m.out_at + e.out;
    return m;
}

static dt_result_t make_whole(struct dt_comm *c, const struct dt_operation *o,
                              const struct mirror *m, uint8_t *pinned)
{
    struct dt_gpu_copies *s = c->gpu->copies;
    struct dt_operation staged = *o;
    dt_result_t r =
        await_copy(c, 0, dt_gpu_copies_fetch(s, 0, pinned + m->in_at, o->in, m->bytes.in));

    if (r != DT_OK)
        return r;
    staged.in = pinned + m->in_at;
    staged.out = pinned + m->out_at;
    r = o->kind->make(c, &staged);
    if (r != DT_OK)
        return r;
    return await_copy(c, 0, dt_gpu_copies_store(s, 0, o->out, pinned + m->out_at, m->bytes.out));
}

/* ---- any operation ---- */

size_t dt_staging_bytes(const struct dt_comm *c, const struct dt_operation *o)
{
    size_t all = o->count * dt_dtype_size(o->dtype);

    if (!goes_in_chunks(o))
        return mirror_of(o, dt_extents_of(o, c->rank, c->size)).total;
    return all < DT_GPU_COPY_CHUNK ? all : DT_GPU_COPY_ROOM;
}

static dt_result_t make_staged(struct dt_comm *c, const struct dt_operation *o, uint8_t *host)
{
    struct mirror m = mirror_of(o, dt_extents_of(o, c->rank, c->size));

    return goes_in_chunks(o) ? make_in_chunks(c, o, host) : make_whole(c, o, &m, host);
}

static dt_result_t follow_order(struct dt_comm *c, const struct dt_gpu_order *order,
                                const struct dt_gpu_copying *g)
{
    CUresult result;

    if (g->waits)
        return dt_gpu_await_order(c, order);
    result = dt_gpu_order_follow(order, g->copies->stream);
    return result ? dt_gpu_fail(c, "cuStreamWaitEvent", result) : DT_OK;
}

static dt_result_t make_in_context(struct dt_comm *c, const struct dt_operation *o)
{
    struct dt_gpu_copies *own = dt_gpu_copies_in(&c->gpu->all_copies, o->order.context);
    struct dt_gpu_copying g;
    CUresult result = dt_gpu_copying_begin(&g, own, o->order.context, dt_staging_bytes(c, o));
    dt_result_t r;

    if (result)
        return dt_gpu_fail(c, g.failed, result);
    c->gpu->copies = g.copies;
    r = follow_order(c, &o->order, &g);
    if (r == DT_OK)
        r = make_staged(c, o, g.host);
    dt_gpu_copying_end(&g, r != DT_OK);
    c->gpu->copies = NULL;
    return r;
}

/* Checks c first: once it has been stopped, the GPU may hang, and a driver call that makes a stream
 * might never return. */
dt_result_t dt_staging_make(struct dt_comm *c, const struct dt_operation *o)
{
    dt_result_t r = dt_comm_check(c);
    struct dt_cuda_scope scope;
    CUresult result;

    if (r != DT_OK)
        return r;
    result = dt_cuda_enter(&scope, o->order.context);
    if (result)
        return dt_gpu_fail(c, scope.failed, result);
    r = make_in_context(c, o);
    dt_cuda_leave(&scope);
    return r;
}

static dt_result_t open_copies(struct dt_comm *c, struct dt_gpu_copies *copies, CUcontext context)
{
    const char *function;
    CUresult result = dt_gpu_copies_make_shared(context, &function);

    if (result)
        return dt_gpu_fail(c, function, result);
    result = dt_gpu_copies_open(copies, context);
    if (result && result != CUDA_ERROR_NOT_READY)
        return dt_gpu_fail(c, copies->failed, result);
    dt_gpu_copies_reserve(copies, DT_GPU_COPY_ROOM);
    return DT_OK;
}

dt_result_t dt_staging_open(struct dt_comm *c, const struct dt_gpu_order *order,
                            struct dt_gpu_copies **copies)
{
    struct dt_cuda_scope scope;
    CUresult result = dt_cuda_enter(&scope, order->context);
    dt_result_t r;

    if (result)
        return dt_gpu_fail(c, scope.failed, result);
    *copies = dt_gpu_copies_in(&c->gpu->all_copies, order->context);
    r = *copies ? open_copies(c, *copies, order->context) : dt_comm_fail_no_memory(c);
    dt_cuda_leave(&scope);
    return r;
}
