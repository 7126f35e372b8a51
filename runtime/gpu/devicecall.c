#include "runtime/gpu/devicecall.h"

#include <stdatomic.h>

#include "runtime/base/reduceoptions.h"
#include "runtime/gpu/device/gate.h"
#include "runtime/gpu/device/wait.h"
#include "runtime/gpu/extents.h"
#include "runtime/gpu/nvidia/cuda.h"

static bool names_root(const struct dt_operation *o)
{
    return o->kind->call == DT_CALL_BROADCAST || o->kind->call == DT_CALL_REDUCE;
}

struct dt_call dt_gpu_call(const struct dt_operation *o)
{
    struct dt_call call = { .count = o->count,
                            .dtype = (uint8_t)o->dtype,
                            .op = (uint8_t)o->op,
                            .device = 1,
                            .root = names_root(o) ? o->root : -1,
                            .options =
                                o->how.size ? dt_reduceoptions_mark(&o->how) | o->buffers : 0 };

    if (!o->count)
        call.count = o->given.each ? o->given.each : o->taken.each;
    return call;
}

dt_result_t dt_gpu_fail(struct dt_comm *c, const char *function, CUresult error)
{
    dt_gpu_coll_error(c, &c->coll_error, function, error);
    return dt_comm_fail_outside(c);
}

static dt_result_t check_device(const struct dt_comm *c, const struct dt_operation *o, CUdevice on,
                                CUdevice first)
{
    if (on == first)
        return DT_OK;
    return dt_fail(DT_ERR_ARG,
                   "rank %d: %s: the buffer is on device %d, but the first one of this "
                   "communicator was on device %d; DTRUN_DEVICE=staging serves both",
                   c->world->rank, o->kind->name, on, first);
}

dt_result_t dt_gpu_check_device(const struct dt_comm *c, const struct dt_operation *o,
                                CUdevice first)
{
    return check_device(c, o, o->order.device, first);
}

static dt_result_t check_buffer(const struct dt_comm *c, const struct dt_operation *o,
                                const void *ptr, const struct dt_gpu_order *first)
{
    CUdevice on;
    dt_result_t r;

    if (dt_cuda()->cuPointerGetAttribute(&on, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                         (CUdeviceptr)(uintptr_t)ptr))
        return DT_OK;
    r = check_device(c, o, on, first->device);
    if (r != DT_OK || dt_gpu_order_serves(ptr, first->context))
        return r;
    return dt_fail(DT_ERR_ARG,
                   "rank %d: %s: the buffer belongs to another context of device %d than the first "
                   "one of this communicator; DTRUN_DEVICE=staging serves both",
                   c->world->rank, o->kind->name, on);
}

dt_result_t dt_gpu_check_buffers(const struct dt_comm *c, const struct dt_operation *o,
                                 const struct dt_gpu_order *first)
{
    struct dt_extents e = dt_extents_of(o, c->rank, c->size);
    const void *in = o->kind->call == DT_CALL_BROADCAST ? o->out : o->in;
    dt_result_t r = e.in ? check_buffer(c, o, in, first) : DT_OK;

    return r == DT_OK && e.out && o->out != in ? check_buffer(c, o, o->out, first) : r;
}

static dt_result_t wait_for(struct dt_comm *c, void *event)
{
    return dt_gpu_await(c, &c->coll_error, event, 0);
}

static dt_result_t await_event(void *c, CUevent event)
{
    return dt_comm_aside(c, DT_CALL_GPU_COPY, wait_for, event);
}

dt_result_t dt_gpu_await_order(struct dt_comm *c, const struct dt_gpu_order *order)
{
    struct dt_cuda_scope scope;
    CUresult result = dt_cuda_enter(&scope, order->context);
    dt_result_t r;

    if (result)
        return dt_gpu_fail(c, "cuCtxPushCurrent", result);
    r = dt_gpu_order_await(order, await_event, c);
    dt_cuda_leave(&scope);
    return r;
}

dt_result_t dt_gpu_await_gates(struct dt_comm *c, const struct dt_gpu_order *order,
                               const struct dt_gpu_gate *own)
{
    return dt_gpu_gate_another_is_shut(own) ? dt_gpu_await_order(c, order) : DT_OK;
}

void dt_gpu_warn_once(struct dt_comm *c, _Atomic bool *warned, const char *text)
{
    if (!atomic_exchange(warned, true) && c->rank == 0)
        dt_agentlink_note(&c->world->agent, text);
}
