#include "runtime/api/checks.h"

#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/kernels/dtype.h"

dt_result_t dt_refuse_buffer(const char *name, const void *buf, size_t count, dt_dtype_t dtype)
{
    size_t size = dt_dtype_size(dtype);

    if (!size)
        return dt_fail(DT_ERR_ARG, "%s: %d is not a dt_dtype_t", name, (int)dtype);
    if (count > PTRDIFF_MAX / size)
        return dt_fail(DT_ERR_ARG, "%s: a buffer of %zu %s is larger than memory", name, count,
                       dt_dtype_name(dtype));
    if (count && buf == DT_IN_PLACE)
        return dt_fail(DT_ERR_ARG, "%s: DT_IN_PLACE was given for a buffer that this rank needs",
                       name);
    return dt_fail(DT_ERR_ARG, "%s: no buffer was given", name);
}

dt_result_t dt_refuse_op(const char *name, dt_dtype_t dtype, dt_op_t op)
{
    if ((unsigned)op >= DT_OP_MAX)
        return dt_fail(DT_ERR_ARG, "%s: %d is not a dt_op_t", name, (int)op);
    if (op == DT_ADASUM)
        return dt_fail(
            DT_ERR_ARG,
            "%s: adasum weighs whole vectors against each other: it is for dt_all_reduce and "
            "dt_iall_reduce, of one vector at a time",
            name);
    return dt_fail(DT_ERR_ARG, "%s: %s works on the bits of integers, not on %s", name,
                   dt_op_name(op), dt_dtype_name(dtype));
}

dt_result_t dt_check_root(const char *name, int root, int size)
{
    if (root >= 0 && root < size)
        return DT_OK;
    return dt_fail(DT_ERR_ARG, "%s: root %d is not one of the %d ranks", name, root, size);
}

dt_result_t dt_check_blocks(const char *name, const char *what, const void *buf,
                            const struct dt_blocks *blocks, int n, dt_dtype_t dtype)
{
    size_t total = 0;

    for (int i = 0; i < n; i++) {
        if (__builtin_add_overflow(total, dt_blocks_count(blocks, (uint32_t)i), &total))
            return dt_fail(DT_ERR_ARG, "%s: the %s add up to more than memory can hold", name,
                           what);
    }
    return dt_check_buffer(name, buf, total, dtype);
}

dt_result_t dt_check_counts(const char *name, enum dt_call_kind kind, const char *what,
                            const struct dt_blocks *blocks)
{
    if (blocks->counts || !(dt_call_traits(kind) & DT_CALL_VARIED))
        return DT_OK;
    return dt_fail(DT_ERR_ARG, "%s: no %s were given", name, what);
}

dt_result_t dt_check_apart(const char *name, const void *in, size_t in_bytes, const void *out,
                           size_t out_bytes, const void *place)
{
    if (in == place || !dt_buffers_overlap(in, in_bytes, out, out_bytes))
        return DT_OK;
    return dt_fail(DT_ERR_ARG, "%s: in and out overlap", name);
}

dt_result_t dt_check_memory(struct dt_operation *o, const void *in, const void *out)
{
    o->touched = (struct dt_buffer_pair){ in, out };
    o->memory = in || out ? dt_memory_of(in, out) : DT_MEMORY_HOST;
    if (o->memory != DT_MEMORY_MIXED)
        return DT_OK;
    return dt_fail(DT_ERR_ARG, "%s: one of in and out is GPU memory, the other is not",
                   o->kind->name);
}

dt_result_t dt_check_reduced_memory(struct dt_operation *o, const void *in, const void *out)
{
    dt_result_t r = dt_check_memory(o, in, out);
    uintptr_t both = (uintptr_t)in | (uintptr_t)out;

    if (r != DT_OK || o->memory != DT_MEMORY_DEVICE || both % dt_dtype_size(o->dtype) == 0)
        return r;
    return dt_fail(DT_ERR_ARG,
                   "%s: a buffer of %s in GPU memory must begin at a multiple of %zu bytes",
                   o->kind->name, dt_dtype_name(o->dtype), dt_dtype_size(o->dtype));
}
