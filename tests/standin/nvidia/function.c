#include "tests/standin/nvidia/function.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/standin/nvidia/abi.h"

enum { TYPES = ncclFloat8e5m2 + 1, GATHER_ALGORITHMS = 4, REDUCE_ALGORITHMS = 6, RING = 1 };

static const int *dti_numbers; /* of each row */

void standin_set_functions(const int *numbers)
{
    dti_numbers = numbers;
}

/* The rows of NCCL's table, which begins with sends and receives. In it a ring is the first
 * algorithm of all-gather and reduce-scatter, and the second of all-reduce. */
static int row_of(const struct standin_function *function)
{
    int variant = (int)function->op * TYPES + (int)function->type;
    int variants = STANDIN_OPERATORS * TYPES;
    int all_gather = 1, broadcast = all_gather + GATHER_ALGORITHMS * NCCL_PROTOCOLS;
    int all_reduce = broadcast + NCCL_PROTOCOLS;
    int reduce = all_reduce + variants * REDUCE_ALGORITHMS * NCCL_PROTOCOLS;
    int reduce_scatter = reduce + variants * NCCL_PROTOCOLS;

    switch (function->collective) {
    case STANDIN_BROADCAST:
        return broadcast + NCCL_SIMPLE;
    case STANDIN_REDUCE:
        return reduce + variant * NCCL_PROTOCOLS + NCCL_SIMPLE;
    case STANDIN_ALL_GATHER:
        return all_gather + NCCL_SIMPLE;
    case STANDIN_REDUCE_SCATTER:
        return reduce_scatter + variant * GATHER_ALGORITHMS * NCCL_PROTOCOLS + NCCL_SIMPLE;
    default:
        return all_reduce + (variant * REDUCE_ALGORITHMS + RING) * NCCL_PROTOCOLS + NCCL_SIMPLE;
    }
}

struct standin_function standin_function(int number)
{
    struct standin_function function;

    if (!dti_numbers) {
        fprintf(stderr, "NCCL has no table ncclDevFuncRowToId\n");
        abort();
    }
    for (int i = 0; i <= STANDIN_ALL_REDUCE; i++)
        for (int j = 0; j < STANDIN_OPERATORS; j++)
            for (int k = 0; k < TYPES; k++) {
                function = (struct standin_function){ i, j, k };
                if (dti_numbers[row_of(&function)] == number)
                    return function;
            }
    fprintf(stderr, "NCCL starts its device function %d, which is not a ring with Simple\n",
            number);
    abort();
}
