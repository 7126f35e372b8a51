/* Operators: ncclAvg, and those that scale what they sum.
 *
 * Rules: ncclAvg multiplies floating-point values by 1/n, rounded to their type, before it sums
 * them. It divides integers after the sum. An operator that a program makes serves one communicator
 * and one type. Its scalar is read at once or, if it is on the device, when the collective runs.
 * The operator may be destroyed when the last call that uses it has returned. */
#include <string.h>

#include "tests/standin/nccl/elements.h"
#include "tests/standin/nccl/errors.h"
#include "tests/standin/nccl/operation.h"

static struct standin_user_op *find(struct ncclComm *comm, ncclRedOp_t op)
{
    int index = (int)op - comm->first_user_op;

    if (index < 0 || index >= STANDIN_USER_OPS || !comm->user_ops[index].used)
        return NULL;
    return &comm->user_ops[index];
}

static void set_average(struct ncclComm *comm, struct standin_operation *operation)
{
    operation->op = ncclSum;
    operation->scaled = standin_reciprocal(operation->type, comm->size, operation->scalar);
    operation->divisor = operation->scaled ? 0 : comm->size;
}

ncclResult_t standin_set_op(struct ncclComm *comm, struct standin_operation *operation,
                            ncclRedOp_t op)
{
    const char *name = standin_function_name(operation->function);
    struct standin_user_op *made;

    operation->op = op;
    if (op == ncclAvg)
        set_average(comm, operation);
    if ((unsigned)op < ncclNumOps)
        return ncclSuccess;
    made = find(comm, op);
    if (!made)
        return standin_warn(ncclInvalidArgument,
                            "%s : reduction operation %d unknown to this communicator", name, op);
    if (made->type != operation->type)
        return standin_warn(ncclInvalidArgument,
                            "Data type supplied to user-created ncclRedOp_t does not match type "
                            "given to reduction operation");
    operation->op = ncclSum;
    operation->scaled = true;
    operation->scalar_at = made->device;
    memcpy(operation->scalar, made->scalar, sizeof(made->scalar));
    return ncclSuccess;
}

static ncclResult_t create(ncclRedOp_t *op, void *scalar, ncclDataType_t type,
                           ncclScalarResidence_t residence, struct ncclComm *comm)
{
    int index = 0;

    while (index < STANDIN_USER_OPS && comm->user_ops[index].used)
        index++;
    if (index == STANDIN_USER_OPS)
        return standin_warn(ncclInternalError, "the stand-in has room for %d operators",
                            STANDIN_USER_OPS);
    comm->user_ops[index] = (struct standin_user_op){ .used = true, .type = type };
    if (residence == ncclScalarDevice)
        comm->user_ops[index].device = (CUdeviceptr)(uintptr_t)scalar;
    else
        memcpy(comm->user_ops[index].scalar, scalar, standin_element_size(type));
    *op = (ncclRedOp_t)(comm->first_user_op + index);
    return ncclSuccess;
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type,
                                      ncclScalarResidence_t residence, ncclComm_t comm)
{
    ncclResult_t result = standin_usable(comm, "ncclRedOpCreatePreMulSum");

    if (result)
        return result;
    if (!op || !scalar || (unsigned)type >= STANDIN_TYPES)
        return standin_warn(ncclInvalidArgument, "ncclRedOpCreatePreMulSum : invalid argument");
    standin_enter(comm, "ncclRedOpCreatePreMulSum");
    result = create(op, scalar, type, residence, comm);
    standin_leave(comm);
    return result;
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
    struct standin_user_op *made;

    if ((unsigned)op < ncclNumOps)
        return standin_warn(ncclInvalidArgument, "ncclRedOpDestroy : operator is a NCCL builtin.");
    if (!comm)
        return standin_warn(ncclInvalidArgument, "ncclRedOpDestroy : invalid communicator passed.");
    standin_enter(comm, "ncclRedOpDestroy");
    made = find(comm, op);
    if (made)
        made->used = false;
    standin_leave(comm);
    return made ? ncclSuccess
                : standin_warn(ncclInvalidArgument,
                               "ncclRedOpDestroy : operator unknown to this communicator.");
}
