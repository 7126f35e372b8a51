#include "runtime/blame.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/dtype.h"

static const char *describe(const struct dt_call *call, char text[160])
{
    const char *where = call->device ? " in device memory" : "";

    if (call->kind == DT_CALL_ALL_REDUCE)
        snprintf(text, 160, "all-reduce of %" PRIu64 " %s (%s)%s, call %" PRIu64, call->count,
                 dt_dtype_name(call->dtype), dt_op_name(call->op), where, call->number);
    else if (call->kind == DT_CALL_BROADCAST)
        snprintf(text, 160, "broadcast of %" PRIu64 " %s from rank %d%s, call %" PRIu64,
                 call->count, dt_dtype_name(call->dtype), call->root, where, call->number);
    else
        snprintf(text, 160, "%s, call %" PRIu64, dt_hostshm_call_name(call->kind), call->number);
    return text;
}

static dt_result_t say_mismatch(const struct dt_comm *c, const struct dt_call *ours)
{
    const struct dt_trouble *t = &c->trouble;
    const char *why = dt_hostshm_why(&c->shm.map);
    char mine[160], theirs[160];

    if (t->theirs.kind == 0 && *why)
        return dt_fail(t->code, "rank %d called %s; elsewhere %s", c->rank, describe(ours, mine),
                       why);
    if (t->theirs.kind == 0)
        return dt_fail(t->code,
                       "rank %d called %s; others called something else, as rank %u noticed",
                       c->rank, describe(ours, mine), t->rank);
    return dt_fail(t->code, "rank %d called %s; rank %u called %s", c->rank, describe(ours, mine),
                   t->rank, describe(&t->theirs, theirs));
}

dt_result_t dt_blame(const struct dt_comm *c, const struct dt_call *call)
{
    const struct dt_trouble *t = &c->trouble;
    const char *why = dt_hostshm_why(&c->shm.map);
    char text[160];

    switch (t->code) {
    case DT_ERR_MISMATCH:
        return say_mismatch(c, call);
    case DT_ERR_PEER:
        if (t->rank == UINT32_MAX)
            return dt_fail(t->code, "rank %d: %s: dtrun-agent of this host has ended", c->rank,
                           describe(call, text));
        return dt_fail(t->code, "rank %d: %s: rank %u died or left", c->rank, describe(call, text),
                       t->rank);
    case DT_ERR_TIMEOUT:
        if (*why)
            return dt_fail(t->code, "rank %d: %s: timed out: %s", c->rank, describe(call, text),
                           why);
        return dt_fail(t->code, "rank %d: no connection with rank %u in %d s%s%s", c->rank, t->rank,
                       DT_COMM_CONNECT_MS / 1000, t->error ? ": " : "",
                       t->error ? strerror(t->error) : "");
    default:
        return dt_fail(t->code, "rank %d: %s: rank %u failed: %s", c->rank, describe(call, text),
                       t->rank, *why ? why : dt_strerror(t->code));
    }
}
