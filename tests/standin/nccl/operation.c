/* Rules ("Collective Communication Functions", "In-place Operations", enqueue.cc): collectives
 * without elements do nothing. Those of a communicator with one member are launched at once, even
 * in a group. The buffers of a collective overlap only if both are the same, or if one has a block
 * for each rank and the other is this rank's block of it. NCCL does not check that, but here any
 * other overlap ends the process. */
#include "tests/standin/nccl/operation.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/standin/nccl/elements.h"
#include "tests/standin/nccl/errors.h"
#include "tests/standin/nccl/group.h"
#include "tests/standin/nccl/inject.h"
#include "tests/standin/nccl/launch.h"

static const char *const dti_names[] = {
    "AllReduce", "Reduce", "Broadcast", "AllGather", "ReduceScatter", "Send", "Recv",
};

const char *standin_function_name(int function)
{
    return dti_names[function];
}

bool standin_is_collective(const struct standin_operation *operation)
{
    return operation->function < STANDIN_SEND;
}

/* The 8-bit floating-point types came with NCCL 2.24. */
static bool is_type(ncclDataType_t type)
{
    int version;

    ncclGetVersion(&version);
    return (unsigned)type < (version < 22400 ? ncclFloat8e4m3 : STANDIN_TYPES);
}

static ncclResult_t check(struct ncclComm *comm, struct standin_operation *operation,
                          ncclRedOp_t op)
{
    const char *name = standin_function_name(operation->function);
    ncclResult_t result = standin_usable(comm, name);

    if (result)
        return result;
    if (operation->root < 0 || operation->root >= comm->size)
        return standin_warn(ncclInvalidArgument,
                            "%s : invalid root %d (root should be in the 0..%d range)", name,
                            operation->root, comm->size);
    if (!is_type(operation->type))
        return standin_warn(ncclInvalidArgument, "%s : invalid type %d", name, operation->type);
    return standin_set_op(comm, operation, op);
}

static size_t distance(CUdeviceptr a, CUdeviceptr b)
{
    return a < b ? b - a : a - b;
}

static void need_apart(const struct ncclComm *comm, const struct standin_operation *operation)
{
    size_t block = operation->count * standin_element_size(operation->type);
    size_t all = block * (size_t)comm->size, place = block * (size_t)comm->rank;
    CUdeviceptr from = operation->from, to = operation->to;
    bool gathers = operation->function == STANDIN_ALL_GATHER;
    bool scatters = operation->function == STANDIN_REDUCE_SCATTER;
    size_t lower = from < to ? (scatters ? all : block) : (gathers ? all : block);

    if (!from || !to || distance(from, to) >= lower ||
        to == (scatters  ? from + place
               : gathers ? from - place
                         : from))
        return;
    fprintf(stderr,
            "libnccl stand-in: the buffers of nccl%s overlap, but are not in place (rank %d)\n",
            standin_function_name(operation->function), comm->rank);
    abort();
}

static void append(struct ncclComm *comm, const struct standin_operation *operation)
{
    struct standin_operation *added = malloc(sizeof(*added));

    *added = *operation;
    *comm->end = added;
    comm->end = &added->next;
}

static ncclResult_t add(struct ncclComm *comm, struct standin_operation *operation, ncclRedOp_t op)
{
    ncclResult_t result = check(comm, operation, op);

    if (result || (!operation->count && standin_is_collective(operation)))
        return result;
    need_apart(comm, operation);
    if (comm->size == 1 && standin_is_collective(operation))
        return standin_launch_alone(comm, operation);
    result = standin_group_add(comm);
    if (!result)
        append(comm, operation);
    return result;
}

static ncclResult_t submit(struct ncclComm *comm, struct standin_operation operation,
                           ncclRedOp_t op)
{
    const char *name = standin_function_name(operation.function);
    ncclResult_t result, ended;

    if (!comm)
        return standin_group_note(
            standin_warn(ncclInvalidArgument, "%s : comm argument is NULL", name));
    standin_enter(comm, name);
    standin_group_start();
    result = standin_inject_submit(comm);
    result = standin_group_note(result ? result : add(comm, &operation, op));
    ended = standin_group_end();
    if (ended == ncclInProgress || !ended)
        ended = result;
    if (!ended && !comm->blocking)
        ncclCommGetAsyncError(comm, &ended);
    standin_leave(comm);
    return ended;
}

static CUdeviceptr address(const void *ptr)
{
    return (CUdeviceptr)(uintptr_t)ptr;
}

#define SUBMIT(what, op, ...)                                                                      \
    submit(comm,                                                                                   \
           (struct standin_operation){                                                             \
               .function = what, .count = count, .type = type, .stream = stream, __VA_ARGS__ },    \
           op)

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, CUstream stream)
{
    return SUBMIT(STANDIN_ALL_REDUCE, op, .from = address(from), .to = address(to));
}

ncclResult_t ncclReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, CUstream stream)
{
    return SUBMIT(STANDIN_REDUCE, op, .from = address(from), .to = address(to), .root = root);
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, CUstream stream)
{
    return SUBMIT(STANDIN_BROADCAST, ncclSum, .from = address(from), .to = address(to),
                  .root = root);
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclComm_t comm, CUstream stream)
{
    return SUBMIT(STANDIN_ALL_GATHER, ncclSum, .from = address(from), .to = address(to));
}

ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, CUstream stream)
{
    return SUBMIT(STANDIN_REDUCE_SCATTER, op, .from = address(from), .to = address(to));
}

ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, CUstream stream)
{
    return SUBMIT(STANDIN_SEND, ncclSum, .from = address(from), .root = peer);
}

ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      CUstream stream)
{
    return SUBMIT(STANDIN_RECV, ncclSum, .to = address(to), .root = peer);
}
