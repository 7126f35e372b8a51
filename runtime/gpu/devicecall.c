#include "runtime/gpu/devicecall.h"

#include <stdatomic.h>

#include "runtime/base/reduceoptions.h"
#include "runtime/gpu/device/gate.h"
#include "runtime/gpu/device/wait.h"
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
                            .device = o->ordered ? DT_DEVICE_ORDERED : DT_DEVICE_MEMORY,
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

static dt_result_t wait_for(struct dt_comm *c, void *event)
{
    return dt_gpu_await(c, &c->coll_error, event, 0);
}

dt_result_t dt_gpu_await_event(struct dt_comm *c, CUevent event)
{
    return dt_comm_aside(c, DT_CALL_GPU_COPY, wait_for, event);
}

static dt_result_t await_event(void *c, CUevent event)
{
    return dt_gpu_await_event(c, event);
}

dt_result_t dt_gpu_await_order(struct dt_comm *c, const struct dt_gpu_order *order)
{
    struct dt_cuda_scope scope;
    CUresult result = dt_cuda_enter(&scope, order->context);
    dt_result_t r;

    if (result)
        return dt_gpu_fail(c, scope.failed, result);
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
