#include "runtime/gpu/staging.h"

#include "runtime/comm/collective.h"
#include "runtime/gpu/device/pinned.h"
#include "runtime/gpu/device/wait.h"
#include "runtime/gpu/devicecall.h"
#include "runtime/gpu/extents.h"
#include "runtime/gpu/gpu.h"
#include "runtime/gpu/nvidia/cuda.h"
#include "runtime/gpu/operation.h"
#include "runtime/kernels/dtype.h"

enum {
    PIECE = 4 * 1024 * 1024, /* bytes, equal on all ranks */
};

/* ---- copies ---- */

struct copying {
    int slot;
    CUresult queued;
};

static dt_result_t wait_for_copy(struct dt_comm *c, void *arg)
{
    const struct copying *copying = arg;

    if (copying->queued)
        return dt_gpu_trouble(c, &c->coll_error, "cuMemcpyAsync", copying->queued);
    return dt_gpu_await(c, &c->coll_error, c->gpu->copies->copied[copying->slot], 0);
}

static dt_result_t await_copy(struct dt_comm *c, int slot, CUresult queued)
{
    struct copying copying = { slot, queued };

    return dt_comm_aside(c, DT_CALL_GPU_COPY, wait_for_copy, &copying);
}

/* ---- in pieces ---- */

struct pieces {
    struct dt_comm *c;
    const struct dt_operation *o;
    const uint8_t *in; /* NULL if this rank gives nothing */
    uint8_t *out;      /* NULL if this rank takes nothing */
    size_t each;       /* elements of a piece */
    size_t n;
    uint8_t *slots[DT_GPU_COPY_SLOTS];
};

static bool goes_in_pieces(const struct dt_operation *o)
{
    enum dt_call_kind kind = o->kind->call;

    return (kind == DT_CALL_ALL_REDUCE && o->op != DT_ADASUM) || kind == DT_CALL_BROADCAST ||
           kind == DT_CALL_REDUCE;
}

static size_t count_of(const struct pieces *p, size_t i)
{
    size_t left = p->o->count - i * p->each;

    return left < p->each ? left : p->each;
}

static CUresult begin_piece(struct pieces *p, size_t i)
{
    size_t size = dt_dtype_size(p->o->dtype);
    const uint8_t *from = p->in ? p->in + i * p->each * size : NULL;
    int slot = (int)(i % DT_GPU_COPY_SLOTS);

    return dt_gpu_copies_fetch(p->c->gpu->copies, slot, p->slots[slot], from,
                               p->in ? count_of(p, i) * size : 0);
}

static dt_result_t make_piece(struct pieces *p, size_t i)
{
    struct dt_operation piece = *p->o;
    uint8_t *slot = p->slots[i % DT_GPU_COPY_SLOTS];

    piece.in = piece.out = slot;
    piece.count = count_of(p, i);
    if (piece.how.residual)
        piece.how.residual += i * p->each;
    return piece.kind->make(p->c, &piece);
}

static CUresult end_piece(struct pieces *p, size_t i)
{
    size_t size = dt_dtype_size(p->o->dtype);
    int slot = (int)(i % DT_GPU_COPY_SLOTS);

    return dt_gpu_copies_store(p->c->gpu->copies, slot, p->out ? p->out + i * p->each * size : NULL,
                               p->slots[slot], p->out ? count_of(p, i) * size : 0);
}

/* Copies the next piece while the call for the current one runs. The stream orders a copy into a
 * slot after the copy out of it. */
static dt_result_t make_pieces(struct pieces *p)
{
    CUresult queued = begin_piece(p, 0);
    dt_result_t r = DT_OK;

    for (size_t i = 0; r == DT_OK && i < p->n; i++) {
        r = await_copy(p->c, (int)(i % DT_GPU_COPY_SLOTS), queued);
        queued = r == DT_OK && i + 1 < p->n ? begin_piece(p, i + 1) : CUDA_SUCCESS;
        if (r == DT_OK)
            r = make_piece(p, i);
        if (r == DT_OK && !queued)
            queued = end_piece(p, i);
    }
    return r == DT_OK ? await_copy(p->c, (int)((p->n - 1) % DT_GPU_COPY_SLOTS), queued) : r;
}

/* The other ranks compare the program's call, not its pieces. */
static dt_result_t match_call(const struct pieces *p)
{
    const struct dt_operation *o = p->o;
    struct dt_call call = { .count = o->count,
                            .dtype = (uint8_t)o->dtype,
                            .op = (uint8_t)o->op,
                            .root = o->kind->call == DT_CALL_ALL_REDUCE ? -1 : o->root };

    return p->c->announce || p->n == 1 ? DT_OK : dt_comm_match(p->c, o->kind->call, call);
}

static dt_result_t make_in_pieces(struct dt_comm *c, const struct dt_operation *o, uint8_t *pinned)
{
    struct dt_extents e = dt_extents_of(o, c->rank, c->size);
    struct pieces p = { .c = c, .o = o, .each = PIECE / dt_dtype_size(o->dtype) };
    const void *in = o->kind->call == DT_CALL_BROADCAST ? o->out : o->in;
    dt_result_t r;

    p.in = e.in ? in : NULL;
    p.out = e.out ? o->out : NULL;
    p.n = (o->count + p.each - 1) / p.each;
    p.slots[0] = pinned;
    p.slots[1] = pinned + (o->count < p.each ? 0 : PIECE);
    r = match_call(&p);
    return r == DT_OK ? make_pieces(&p) : r;
}

/* ---- whole ---- */

/* Positions in pinned memory: overlapping buffers keep their distance. */
struct mirror {
    struct dt_extents bytes;
    size_t in_at, out_at, total;
};

static struct mirror mirror_of(const struct dt_operation *o, struct dt_extents e)
{
    struct mirror m = { .bytes = e, .out_at = (e.in + 63) / 64 * 64 };
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

    if (!goes_in_pieces(o))
        return mirror_of(o, dt_extents_of(o, c->rank, c->size)).total;
    return all < PIECE ? all : (size_t)DT_GPU_COPY_SLOTS * PIECE;
}

static dt_result_t make_staged(struct dt_comm *c, const struct dt_operation *o)
{
    struct mirror m = mirror_of(o, dt_extents_of(o, c->rank, c->size));
    uint8_t *pinned = dt_pinned_take(dt_staging_bytes(c, o), c->gpu->copies);
    dt_result_t r;

    if (!pinned)
        return dt_gpu_fail(c, "cuMemHostAlloc", CUDA_ERROR_OUT_OF_MEMORY);
    r = goes_in_pieces(o) ? make_in_pieces(c, o, pinned) : make_whole(c, o, &m, pinned);
    dt_gpu_copies_settle(c->gpu->copies, pinned, r != DT_OK);
    return r;
}

dt_result_t dt_staging_make(struct dt_comm *c, const struct dt_operation *o)
{
    struct dt_cuda_scope scope;
    CUresult result = dt_cuda_enter(&scope, o->order.context);
    dt_result_t r;

    if (result)
        return dt_gpu_fail(c, "cuCtxPushCurrent", result);
    result = dt_gpu_copies_in(&c->gpu->all_copies, o->order.context, &c->gpu->copies);
    if (!result)
        result = dt_gpu_order_follow(&o->order, c->gpu->copies->stream);
    r = result ? dt_gpu_fail(c, "cuStreamCreate", result) : make_staged(c, o);
    dt_cuda_leave(&scope);
    return r;
}

dt_result_t dt_staging_open(struct dt_comm *c, const struct dt_gpu_order *order,
                            struct dt_gpu_copies **copies)
{
    struct dt_cuda_scope scope;
    CUresult result = dt_cuda_enter(&scope, order->context);

    if (result)
        return dt_gpu_fail(c, "cuCtxPushCurrent", result);
    result = dt_gpu_copies_in(&c->gpu->all_copies, order->context, copies);
    if (!result)
        dt_pinned_reserve((size_t)DT_GPU_COPY_SLOTS * PIECE, *copies);
    dt_cuda_leave(&scope);
    return result ? dt_gpu_fail(c, "cuStreamCreate", result) : DT_OK;
}
