/* Checks of what a program passes to the public calls: each says in dt_last_error what is wrong,
 * and returns DT_ERR_ARG. name: of the call. */
#ifndef DT_RUNTIME_CHECKS_H
#define DT_RUNTIME_CHECKS_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/dtrun.h"
#include "runtime/host/blocks.h"

/* A buffer that the library reads or writes; DT_IN_PLACE is none. */
dt_result_t dt_check_buffer(const char *name, const void *buf, size_t count, dt_dtype_t dtype);
dt_result_t dt_check_op(const char *name, dt_dtype_t dtype, dt_op_t op);
dt_result_t dt_check_root(const char *name, int root, int size);
/* n blocks of a buffer; what: of the argument that has their counts. */
dt_result_t dt_check_blocks(const char *name, const char *what, const void *buf,
                            const struct dt_blocks *blocks, int n, dt_dtype_t dtype);

size_t dt_blocks_total(const struct dt_blocks *blocks, int n);
/* Where a rank's block begins, in bytes. */
size_t dt_blocks_at(const struct dt_blocks *blocks, int rank, dt_dtype_t dtype);
bool dt_buffers_overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes);

#endif
