#include "runtime/gpu/device/transfer.h"

#include "runtime/base/copy.h"
#include "runtime/comm/error_report.h"
#include "runtime/gpu/device/copies.h"
#include "runtime/gpu/device/gate.h"
#include "runtime/gpu/device/life.h"
#include "runtime/gpu/device/order.h"
#include "runtime/gpu/device/provision.h"
#include "runtime/gpu/device/wait.h"
#include "runtime/gpu/nvidia/cuda.h"
#include "runtime/gpu/nvidia/cudafail.h"

struct transfer {
    struct dt_comm *c;
    const char *name;
    uint8_t *device;
    uint64_t bytes;
    dt_gpu_chunk_f on_chunk;
    void *arg;
    struct dt_gpu_copies *copies;
    struct dt_gpu_copying copying;
    struct dt_gpu_hostmem *hostmem; /* for a copy in one piece */
    uint8_t *place;                 /* where it goes */
};

static int slot_of(uint64_t at)
{
    return (int)(at / DT_GPU_COPY_CHUNK % DT_GPU_COPY_SLOTS);
}

static uint8_t *host_of(const struct transfer *t, uint64_t at)
{
    return t->copying.host + (size_t)slot_of(at) * DT_GPU_COPY_CHUNK;
}

static size_t length_at(const struct transfer *t, uint64_t at)
{
    return t->bytes - at < DT_GPU_COPY_CHUNK ? (size_t)(t->bytes - at) : DT_GPU_COPY_CHUNK;
}

static dt_result_t check_transfer(const struct transfer *t, CUresult result)
{
    return result ? dt_cuda_fail(t->name, t->copying.copies->failed, result) : DT_OK;
}

static dt_result_t await_event(void *transfer, CUevent event)
{
    const struct transfer *t = transfer;
    struct dt_coll_error error;
    dt_result_t r = dt_gpu_await(t->c, &error, event, 0);

    if (r == DT_OK)
        return r;
    if (r == DT_ERR_CUDA)
        return dt_cuda_fail_as(r, t->name, error.why);
    return dt_error_report(t->c, &error, NULL, NULL);
}

static dt_result_t await_transfer(struct transfer *t, uint64_t at)
{
    return await_event(t, t->copying.copies->copied[slot_of(at)]);
}

/* ---- from the GPU ---- */

static dt_result_t begin_fetch(struct transfer *t, uint64_t at)
{
    if (at >= t->bytes)
        return DT_OK;
    return check_transfer(t, dt_gpu_copies_fetch(t->copying.copies, slot_of(at), host_of(t, at),
                                                 t->device + at, length_at(t, at)));
}

static dt_result_t fetch_chunks(struct transfer *t)
{
    dt_result_t r = begin_fetch(t, 0);

    for (uint64_t at = 0; r == DT_OK && at < t->bytes; at += DT_GPU_COPY_CHUNK) {
        r = begin_fetch(t, at + DT_GPU_COPY_CHUNK);
        if (r == DT_OK)
            r = await_transfer(t, at);
        if (r == DT_OK)
            r = t->on_chunk(t->arg, host_of(t, at), length_at(t, at));
    }
    return r;
}

/* ---- to the GPU ---- */

/* A slot's event counts as complete before its first copy. */
static dt_result_t store_chunks(struct transfer *t)
{
    dt_result_t r = DT_OK;

    for (uint64_t at = 0; r == DT_OK && at < t->bytes; at += DT_GPU_COPY_CHUNK) {
        r = await_transfer(t, at);
        if (r == DT_OK)
            r = t->on_chunk(t->arg, host_of(t, at), length_at(t, at));
        if (r == DT_OK)
            r = check_transfer(t,
                               dt_gpu_copies_store(t->copying.copies, slot_of(at), t->device + at,
                                                   host_of(t, at), length_at(t, at)));
    }
    for (int slot = 0; r == DT_OK && slot < DT_GPU_COPY_SLOTS; slot++)
        r = await_transfer(t, (uint64_t)slot * DT_GPU_COPY_CHUNK);
    return r;
}

/* ---- in one piece ---- */

static bool register_hostmem(const struct dt_gpu_hostmem *m)
{
    CUresult result;

    if (!dt_gpu_provision_begin())
        return false;
    result = dt_cuda()->cuMemHostRegister_v2(m->memory, m->bytes, CU_MEMHOSTREGISTER_PORTABLE);
    dt_gpu_provision_end();
    return result == CUDA_SUCCESS;
}

/* The context is current. */
static bool pin_hostmem(struct dt_gpu_hostmem *m, CUcontext context)
{
    struct dt_cuda_scope scope;

    if (m->context && dt_gpu_enter_life(&scope, m->context, m->life)) {
        dt_cuda_leave(&scope);
        return true;
    }
    m->context = NULL;
    if (!register_hostmem(m))
        return false;
    m->context = context;
    m->life = dt_gpu_life(context);
    return true;
}

static dt_result_t copy_chunk(void *transfer, void *host, size_t bytes)
{
    struct transfer *t = transfer;

    dt_copy(t->place, host, bytes);
    t->place += bytes;
    return DT_OK;
}

static dt_result_t fetch_in_one_piece(struct transfer *t)
{
    dt_result_t r =
        check_transfer(t, dt_gpu_copies_fetch(t->copying.copies, 0, t->place, t->device, t->bytes));

    return r == DT_OK ? await_transfer(t, 0) : r;
}

void dt_gpu_hostmem_release(struct dt_gpu_hostmem *m)
{
    struct dt_cuda_scope scope;

    if (m->busy)
        return;
    dt_gpu_copies_close(&m->copies);
    if (!m->context || !dt_gpu_enter_life(&scope, m->context, m->life))
        return;
    dt_cuda()->cuMemHostUnregister(m->memory);
    dt_cuda_leave(&scope);
    m->context = NULL;
}

/* ---- all transfers ---- */

/* As dt_gpu_await_gates (devicecall.h). */
static dt_result_t follow_order(struct transfer *t, const struct dt_gpu_order *order)
{
    CUresult result;

    if (t->copying.waits || dt_gpu_gate_another_is_shut(NULL))
        return dt_gpu_order_await(order, await_event, t);
    result = dt_gpu_order_follow(order, t->copying.copies->stream);
    return result ? dt_cuda_fail(t->name, "cuStreamWaitEvent", result) : DT_OK;
}

static dt_result_t transfer_in_context(struct transfer *t, const struct dt_gpu_order *order,
                                       dt_result_t (*in_chunks)(struct transfer *t))
{
    bool whole = t->hostmem && pin_hostmem(t->hostmem, order->context), over;
    CUresult result =
        dt_gpu_copying_begin(&t->copying, t->copies, order->context, whole ? 0 : DT_GPU_COPY_ROOM);
    dt_result_t r;

    if (result)
        return dt_cuda_fail(t->name, t->copying.failed, result);
    r = follow_order(t, order);
    if (r == DT_OK)
        r = whole ? fetch_in_one_piece(t) : in_chunks(t);
    over = dt_gpu_copying_end(&t->copying, r != DT_OK);
    if (whole)
        t->hostmem->busy |= !over;
    return r;
}

static dt_result_t transfer(struct transfer *t, dt_result_t (*in_chunks)(struct transfer *t))
{
    const struct dt_buffer_pair buffer = { .in = t->device };
    struct dt_gpu_order order;
    struct dt_cuda_scope scope;
    dt_result_t r = dt_gpu_order_take(&order, t->name, &buffer);
    CUresult result;

    if (r != DT_OK)
        return r;
    result = dt_cuda_enter(&scope, order.context);
    if (result) {
        r = dt_cuda_fail(t->name, scope.failed, result);
    } else {
        r = transfer_in_context(t, &order, in_chunks);
        dt_cuda_leave(&scope);
    }
    dt_gpu_order_drop(&order);
    return r;
}

static dt_result_t transfer_in_chunks(struct dt_comm *c, const char *name, const void *device,
                                      uint64_t bytes, dt_gpu_chunk_f on_chunk, void *arg,
                                      dt_result_t (*in_chunks)(struct transfer *t))
{
    struct dt_gpu_copies copies = { 0 };
    struct transfer t = { .c = c,
                          .name = name,
                          .device = (uint8_t *)(uintptr_t)device,
                          .bytes = bytes,
                          .on_chunk = on_chunk,
                          .arg = arg,
                          .copies = &copies };
    dt_result_t r = transfer(&t, in_chunks);

    dt_gpu_copies_close(&copies);
    return r;
}

dt_result_t dt_gpu_fetch(struct dt_comm *c, const char *name, const void *device, uint64_t bytes,
                         dt_gpu_chunk_f consume, void *arg)
{
    return transfer_in_chunks(c, name, device, bytes, consume, arg, fetch_chunks);
}

dt_result_t dt_gpu_store(struct dt_comm *c, const char *name, void *device, uint64_t bytes,
                         dt_gpu_chunk_f produce, void *arg)
{
    return transfer_in_chunks(c, name, device, bytes, produce, arg, store_chunks);
}

dt_result_t dt_gpu_fetch_to(struct dt_comm *c, const char *name, const void *device, uint64_t bytes,
                            struct dt_gpu_hostmem *m, void *place)
{
    struct transfer t = { .c = c,
                          .name = name,
                          .device = (uint8_t *)(uintptr_t)device,
                          .bytes = bytes,
                          .on_chunk = copy_chunk,
                          .copies = &m->copies,
                          .hostmem = m,
                          .place = place };

    t.arg = &t;
    return transfer(&t, fetch_chunks);
}
