/* Checks of the arguments of public calls. Each function returns DT_OK or DT_ERR_ARG, and then
 * dt_last_error says what is wrong. name is the public call's. */
#ifndef DT_API_CHECKS_H
#define DT_API_CHECKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/blocks.h"
#include "runtime/dtrun.h"
#include "runtime/gpu/operation.h"
#include "runtime/kernels/dtype.h"
#include "runtime/wire/callkind.h"

/* Report what dt_check_buffer and dt_check_op have found. */
dt_result_t dt_refuse_buffer(const char *name, const void *buf, size_t count, dt_dtype_t dtype);
dt_result_t dt_refuse_op(const char *name, dt_dtype_t dtype, dt_op_t op);

/* Checks a buffer that the library reads or writes. DT_IN_PLACE is not one. */
static inline dt_result_t dt_check_buffer(const char *name, const void *buf, size_t count,
                                          dt_dtype_t dtype)
{
    size_t size = dt_dtype_size(dtype); /* a power of two, so a shift replaces a division */
    bool fits = size && count <= (size_t)PTRDIFF_MAX >> __builtin_ctzl(size);

    if (fits && (!count || (buf && buf != DT_IN_PLACE)))
        return DT_OK;
    return dt_refuse_buffer(name, buf, count, dtype);
}

static inline dt_result_t dt_check_op(const char *name, dt_dtype_t dtype, dt_op_t op)
{
    return dt_op_applies(op, dtype) ? DT_OK : dt_refuse_op(name, dtype, op);
}

dt_result_t dt_check_root(const char *name, int root, int size);
/* Checks a buffer of n blocks. what names the argument that holds their counts. */
dt_result_t dt_check_blocks(const char *name, const char *what, const void *buf,
                            const struct dt_blocks *blocks, int n, dt_dtype_t dtype);

/* Checks that the array of counts was given, if this kind of call takes one. */
dt_result_t dt_check_counts(const char *name, enum dt_call_kind kind, const char *what,
                            const struct dt_blocks *blocks);
/* Checks that "in" and out do not overlap, unless "in" is "place", a block of out. */
dt_result_t dt_check_apart(const char *name, const void *in, size_t in_bytes, const void *out,
                           size_t out_bytes, const void *place);
/* Stores which buffers this rank touches, and the kind of memory that they are in. Either is NULL
 * if this rank has no data there. */
dt_result_t dt_check_memory(struct dt_operation *o, const void *in, const void *out);
/* The same for a reduction. NCCL's kernels need GPU memory that is aligned for the type. */
dt_result_t dt_check_reduced_memory(struct dt_operation *o, const void *in, const void *out);

#endif
