/* Ending communicators.
 *
 * Rules ("Destroying a communicator"; init.cc and proxy.cc of 2.28): ncclCommFinalize waits for the
 * communicator's kernels, and for its peers on the same host to finalize, abort or end as well.
 * ncclCommDestroy finalizes the communicator if that has not been done. Both it and ncclCommAbort
 * free device memory, which waits for all work of the device.
 *
 * ncclCommAbort ends running kernels, waits for no peer, and may be called by another thread. It
 * waits for work that the program's thread has handed to NCCL's own thread. It does not wait for
 * the program's thread, which must not be inside another call when the communicator is freed. It
 * frees the communicator at the end of the outermost group, or before NCCL 2.22 at once. So in a
 * group, the kernels of all its communicators end first.
 *
 * If the communicator is in progress or has an asynchronous error, ncclCommDestroy frees nothing
 * and leaves the calling thread inside a group that has not ended. */
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/standin/nccl/device.h"
#include "tests/standin/nccl/errors.h"
#include "tests/standin/nccl/group.h"
#include "tests/standin/nccl/inject.h"
#include "tests/standin/nccl/link.h"
#include "tests/standin/nccl/order.h"

static bool is_awaited(const struct ncclComm *comm, const struct standin_member *member)
{
    return member->said.host == comm->own->said.host && !standin_is_own(member) &&
           atomic_load(&member->stage) == STANDIN_PRESENT && !standin_has_ended(member);
}

static void await_peers(struct ncclComm *comm)
{
    for (int r = 0; r < comm->size; r++) {
        uint32_t seen = standin_changes(comm->shared);

        while (is_awaited(comm, &comm->shared->members[r]) && standin_pause(comm, seen))
            seen = standin_changes(comm->shared);
    }
}

static void leave(struct ncclComm *comm)
{
    if (!comm->own)
        return;
    atomic_store(&comm->own->stage, STANDIN_LEFT);
    standin_tell(comm->shared);
}

/* After a reset of the device there is nothing left to wait for or to free. */
static bool is_reset(const struct ncclComm *comm)
{
    return comm->context && standin_life(comm->context) != comm->life;
}

static ncclResult_t finalize(struct ncclComm *comm)
{
    ncclResult_t result = standin_set_device(comm->device);

    if (is_reset(comm))
        result = ncclUnhandledCudaError;
    if (!result)
        result = standin_cuda(cuEventSynchronize(comm->launched));
    standin_log("rank %d leaves communicator %llx", comm->rank, comm->shared->id);
    leave(comm);
    await_peers(comm);
    standin_flush(comm->shared);
    return result;
}

static void free_resources(struct ncclComm *comm)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

    standin_order_remove(comm);
    cuThreadExchangeStreamCaptureMode(&mode);
    if (!is_reset(comm)) {
        if (!standin_set_device(comm->device) && comm->memory)
            cuMemFree_v2(comm->memory);
        if (comm->launched)
            cuEventDestroy_v2(comm->launched);
    }
    cuThreadExchangeStreamCaptureMode(&mode);
    standin_drop(comm);
}

static ncclResult_t run_finalize(struct standin_job *job)
{
    return finalize(job->comm);
}

static ncclResult_t run_destroy(struct standin_job *job)
{
    ncclResult_t result = ncclSuccess;

    standin_inject_destroy(job->comm);
    if (!job->comm->finalized)
        result = finalize(job->comm);
    free_resources(job->comm);
    return result;
}

static ncclResult_t run_abort(struct standin_job *job)
{
    standin_check_unused(job->comm, "ncclCommAbort frees it");
    standin_inject_abort(job->comm);
    leave(job->comm);
    free_resources(job->comm);
    return ncclSuccess;
}

static ncclResult_t add_job(struct ncclComm *comm, ncclResult_t (*run)(struct standin_job *))
{
    struct standin_job *job = calloc(1, sizeof(*job));

    job->comm = comm;
    job->run = run;
    return standin_group_add_job(job);
}

static ncclResult_t begin_finalize(struct ncclComm *comm)
{
    ncclResult_t result = standin_usable(comm, "ncclCommFinalize");

    if (result)
        return result;
    if (comm->finalized)
        return standin_warn(ncclInvalidArgument, "ncclCommFinalize : it is finalized already");
    comm->finalized = true;
    return add_job(comm, run_finalize);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    ncclResult_t result, ended;

    if (!comm)
        return ncclSuccess;
    standin_enter(comm, "ncclCommFinalize");
    standin_group_start();
    result = standin_group_note(begin_finalize(comm));
    ended = standin_group_end();
    if (!ended || ended == ncclInProgress)
        ended = result;
    if (!ended && !comm->blocking)
        ncclCommGetAsyncError(comm, &ended);
    standin_leave(comm);
    return ended;
}

static ncclResult_t end_comm(struct ncclComm *comm, ncclResult_t (*run)(struct standin_job *))
{
    ncclResult_t result, ended;

    comm->destroying = true;
    result = standin_group_note(add_job(comm, run));
    ended = standin_group_end();
    return ended && ended != ncclInProgress ? ended : result;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    ncclResult_t result;

    if (!comm)
        return ncclSuccess;
    standin_enter(comm, "ncclCommDestroy");
    standin_group_start();
    result = standin_usable(comm, "ncclCommDestroy");
    standin_leave(comm);
    return result ? result : end_comm(comm, run_destroy);
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    struct standin_job alone = { .comm = comm };
    int version;

    if (!comm)
        return ncclSuccess;
    atomic_store(&comm->aborted, true);
    while (atomic_load(&comm->in_progress))
        usleep(100);
    ncclGetVersion(&version);
    if (version < 22200)
        return run_abort(&alone);
    standin_group_start();
    return end_comm(comm, run_abort);
}
