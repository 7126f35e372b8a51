/* NCCL numbers its device functions, one for each collective, operator, type, algorithm and
 * protocol. */
#ifndef TESTS_STANDIN_NVIDIA_FUNCTION_H
#define TESTS_STANDIN_NVIDIA_FUNCTION_H

#include "runtime/gpu/nvidia/abi_nccl.h"

enum standin_collective {
    STANDIN_BROADCAST,
    STANDIN_REDUCE,
    STANDIN_ALL_GATHER,
    STANDIN_REDUCE_SCATTER,
    STANDIN_ALL_REDUCE,
};

/* Those of NCCL's device code. */
enum standin_operator {
    STANDIN_SUM,
    STANDIN_PRODUCT,
    STANDIN_MIN_MAX,
    STANDIN_SCALED_SUM,
    STANDIN_DIVIDED_SUM,
    STANDIN_OPERATORS,
};

struct standin_function {
    enum standin_collective collective;
    enum standin_operator op;
    ncclDataType_t type; /* signed and unsigned integers can share a function */
};

/* NCCL's table of the numbers of its device functions. To be set before the first kernel. */
void standin_set_functions(const int *numbers);

/* The function of this number. Ends the program if it is none of a ring with protocol Simple. */
struct standin_function standin_function(int number);

#endif
