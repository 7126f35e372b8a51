#include "tests/standin/nccl/launch.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "tests/standin/nccl/device.h"
#include "tests/standin/nccl/errors.h"
#include "tests/standin/nccl/kernel.h"
#include "tests/standin/nccl/order.h"

void standin_discard(struct ncclComm *comm)
{
    struct standin_operation *next;

    for (struct standin_operation *at = comm->first; at; at = next) {
        next = at->next;
        free(at);
    }
    comm->first = NULL;
    comm->end = &comm->first;
}

static struct standin_kernel_plan *new_plan(struct ncclComm *comm,
                                            const struct standin_operation *first)
{
    struct standin_kernel_plan *plan;
    size_t count = 0;

    for (const struct standin_operation *at = first; at; at = at->next)
        count++;
    plan = calloc(1, sizeof(*plan) + count * sizeof(*first));
    plan->comm = comm;
    for (const struct standin_operation *at = first; at; at = at->next)
        plan->operations[plan->count++] = *at;
    return plan;
}

/* NCCL's manual promises no order between kernels of a communicator on different streams, so the
 * program has to make one. (NCCL up to 2.28 makes one itself.) */
static void run(void *data)
{
    struct standin_kernel_plan *plan = data;

    if (atomic_fetch_add(&plan->comm->running, 1) > 0)
        standin_report("no launch order: rank %d runs two kernels of communicator %llx at once",
                       plan->comm->rank, plan->comm->place.id);
    standin_run_kernel(plan);
    atomic_fetch_sub(&plan->comm->running, 1);
    standin_drop(plan->comm);
}

static CUresult join_streams(struct ncclComm *comm, const struct standin_kernel_plan *plan)
{
    CUstream main = plan->operations[0].stream;
    CUresult result = CUDA_SUCCESS;

    for (size_t i = 1; i < plan->count && !result; i++) {
        if (plan->operations[i].stream == main)
            continue;
        result = cuEventRecord(comm->launched, plan->operations[i].stream);
        if (!result)
            result = cuStreamWaitEvent(main, comm->launched, 0);
    }
    return result;
}

static CUresult release_streams(struct ncclComm *comm, CUstream main,
                                const struct standin_operation *first)
{
    CUresult result = cuEventRecord(comm->launched, main);

    for (; first && !result; first = first->next)
        if (first->stream != main)
            result = cuStreamWaitEvent(first->stream, comm->launched, 0);
    return result;
}

/* All streams of a kernel belong to one context. */
static CUresult check_stream(const struct ncclComm *comm, CUstream stream,
                             CUstreamCaptureStatus *capture)
{
    CUcontext context;
    CUresult result = cuStreamIsCapturing(stream, capture);

    if (result || *capture)
        return result;
    result = cuStreamGetCtx(stream, &context);
    return !result && context != comm->context ? CUDA_ERROR_INVALID_HANDLE : result;
}

/* Takes over the plan. */
static CUresult enqueue(struct ncclComm *comm, struct standin_kernel_plan *plan, CUstream main)
{
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult result = check_stream(comm, main, &capture);

    if (!result && !capture) /* graphs are never launched here */
        result = join_streams(comm, plan);
    if (result || capture) {
        free(plan);
        return result;
    }
    standin_log("rank %d launches nccl%s", comm->rank,
                standin_function_name(plan->operations[0].function));
    standin_order_launch(plan);
    standin_keep(comm);
    result = standin_enqueue(main, run, plan);
    if (result)
        standin_drop(comm);
    return result;
}

/* In the communicator's context. */
static ncclResult_t launch(struct ncclComm *comm, const struct standin_operation *first)
{
    CUstream main = first->stream;
    CUresult result = enqueue(comm, new_plan(comm, first), main);

    return standin_cuda(result ? result : release_streams(comm, main, first));
}

ncclResult_t standin_launch(struct ncclComm *comm)
{
    ncclResult_t result = comm->first ? standin_set_device(comm->device) : ncclSuccess;

    if (!result && comm->first)
        result = launch(comm, comm->first);
    standin_discard(comm);
    return result;
}

ncclResult_t standin_launch_alone(struct ncclComm *comm, const struct standin_operation *operation)
{
    ncclResult_t result = standin_cuda(cuCtxPushCurrent_v2(comm->context));

    if (result)
        return result;
    result = launch(comm, operation);
    cuCtxPopCurrent_v2(NULL);
    return result;
}
