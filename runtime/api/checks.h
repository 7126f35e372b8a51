/* Checks of what a program passes to the public calls: each says in dt_last_error what is wrong,
 * and returns DT_ERR_ARG. name: of the call. */
#ifndef DT_API_CHECKS_H
#define DT_API_CHECKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/blocks.h"
#include "runtime/dtrun.h"
#include "runtime/gpu/memory.h"
#include "runtime/kernels/dtype.h"

/* Say what the next two have found. */
dt_result_t dt_refuse_buffer(const char *name, const void *buf, size_t count, dt_dtype_t dtype);
dt_result_t dt_refuse_op(const char *name, dt_dtype_t dtype, dt_op_t op);

/* A buffer that the library reads or writes; DT_IN_PLACE is none. */
static inline dt_result_t dt_check_buffer(const char *name, const void *buf, size_t count,
                                          dt_dtype_t dtype)
{
    size_t size = dt_dtype_size(dtype); /* a power of two, which spares a division */
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
/* n blocks of a buffer; what: of the argument that has their counts. */
dt_result_t dt_check_blocks(const char *name, const char *what, const void *buf,
                            const struct dt_blocks *blocks, int n, dt_dtype_t dtype);

/* The array of an argument that has to have counts for all ranks. */
dt_result_t dt_check_counts(const char *name, const char *what, const struct dt_blocks *blocks);
/* "in" is "place", a block of out, or lies apart from all of out. */
dt_result_t dt_check_apart(const char *name, const void *in, size_t in_bytes, const void *out,
                           size_t out_bytes, const void *place);
/* Whose memory both are in. Buffers where there is anything to look at; else NULL. */
dt_result_t dt_check_memory(const char *name, const void *in, const void *out,
                            enum dt_memory *memory);

#endif
