/* Arithmetic on arrays of every NCCL data type, rounded as in NCCL's kernels: after each operation,
 * to the type itself. 8-bit floating-point types go through half precision and saturate. */
#ifndef TESTS_STANDIN_NCCL_ELEMENTS_H
#define TESTS_STANDIN_NCCL_ELEMENTS_H

#include <stdbool.h>

#include "runtime/gpu/nvidia/abi_nccl.h"

enum { STANDIN_TYPES = ncclFloat8e5m2 + 1 };

size_t standin_element_size(ncclDataType_t type);

/* sum[i] = sum[i] op in[i * step], where op is one of Sum, Prod, Max and Min. */
void standin_fold(ncclDataType_t type, ncclRedOp_t op, void *sum, const void *in, size_t step,
                  size_t count);

/* What ncclAvg does to integers once they are summed: divides and truncates towards zero. */
void standin_divide(ncclDataType_t type, void *values, size_t count, int divisor);

/* 1/divisor as an element of a floating-point type; false for integers. */
bool standin_reciprocal(ncclDataType_t type, int divisor, void *element);

#endif
