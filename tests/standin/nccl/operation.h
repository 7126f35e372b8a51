/* The calls that move data: kinds, arguments, and the operators that users make. */
#ifndef TESTS_STANDIN_NCCL_OPERATION_H
#define TESTS_STANDIN_NCCL_OPERATION_H

#include "tests/standin/nccl/comm.h"

enum standin_function {
    STANDIN_ALL_REDUCE,
    STANDIN_REDUCE,
    STANDIN_BROADCAST,
    STANDIN_ALL_GATHER,
    STANDIN_REDUCE_SCATTER,
    STANDIN_SEND,
    STANDIN_RECV,
};

struct standin_operation {
    struct standin_operation *next;
    enum standin_function function;
    CUdeviceptr from, to;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t op; /* Sum, Prod, Max or Min, applied after scaling and before dividing */
    bool scaled;
    CUdeviceptr scalar_at; /* 0: the scalar is `scalar` */
    char scalar[8];
    int divisor; /* 0: do not divide */
    int root;    /* root or peer */
    CUstream stream;
};

const char *standin_function_name(int function);
bool standin_is_collective(const struct standin_operation *operation);

/* Sets the fields that depend on the operator. */
ncclResult_t standin_set_op(struct ncclComm *comm, struct standin_operation *operation,
                            ncclRedOp_t op);

#endif
