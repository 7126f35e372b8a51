#include "runtime/base/coll_error.h"

#include <inttypes.h>
#include <stdio.h>

#include "runtime/base/reduceoptions.h"
#include "runtime/kernels/dtype.h"

enum {
    COUNT = DT_CALL_TELLS_COUNT,
    TYPE = DT_CALL_TELLS_TYPE,
    OP = DT_CALL_TELLS_OP,
    TO = DT_CALL_TELLS_TO,
    FROM = DT_CALL_TELLS_FROM,
};

/* The count that the program passed. A reduce-scatter has the count of all blocks, and the number
 * of blocks as options. */
static uint64_t count_of(const struct dt_call *call)
{
    return call->kind == DT_CALL_REDUCE_SCATTER && call->options ? call->count / call->options
                                                                 : call->count;
}

static const char *memory_of(const struct dt_call *call)
{
    switch (call->device) {
    case DT_DEVICE_NONE:
        return "";
    case DT_DEVICE_MEMORY:
        return " in device memory";
    default:
        return " in device memory, on a stream";
    }
}

const char *dt_call_describe(const struct dt_call *call, char text[DT_CALL_TEXT])
{
    uint64_t options = call->kind == DT_CALL_ALL_REDUCE ? call->options : 0;
    unsigned traits = dt_call_traits(call->kind);
    char count[24] = "", type[24] = "", op[24] = "", root[24] = "";

    if (traits & COUNT)
        snprintf(count, sizeof count, " %" PRIu64, count_of(call));
    if (traits & TYPE)
        snprintf(type, sizeof type, " %s", dt_dtype_name(call->dtype));
    if (traits & OP)
        snprintf(op, sizeof op, " (%s)", dt_op_name(call->op));
    if (traits & (TO | FROM))
        snprintf(root, sizeof root, " %s rank %d", traits & TO ? "to" : "from", call->root);
    snprintf(text, DT_CALL_TEXT, "%s%s%s%s%s%s%s%s, call %" PRIu64,
             dt_hostshm_call_name(call->kind), traits & TYPE ? " of" : "", count, type, op, root,
             dt_reduceoptions_describe(options), memory_of(call), call->number);
    return text;
}

/* Each step is a bijection, so counts that differ in one place never have the same hash. */
uint64_t dt_counts_hash(const size_t *counts, size_t n)
{
    uint64_t x = n;

    for (size_t i = 0; i < n; i++) {
        x = (x ^ counts[i]) * 0x9e3779b97f4a7c15U;
        x ^= x >> 32;
    }
    return x;
}
