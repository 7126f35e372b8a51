#include "runtime/blame.h"

#include <inttypes.h>
#include <string.h>

static dt_result_t say_mismatch(const struct dt_comm *c, const struct dt_call *ours)
{
    const struct dt_trouble *t = &c->trouble;
    const char *why = dt_hostshm_why(&c->shm.map);
    char mine[DT_CALL_TEXT], theirs[DT_CALL_TEXT];

    if (t->given != t->expected)
        return dt_fail(t->code,
                       "rank %d called %s; there rank %u gives %" PRIu64
                       " elements to rank %u, which expects %" PRIu64,
                       c->rank, dt_call_describe(ours, mine), t->giver, t->given, t->taker,
                       t->expected);
    if (t->theirs.kind == 0 && *why)
        return dt_fail(t->code, "rank %d called %s; elsewhere %s", c->rank,
                       dt_call_describe(ours, mine), why);
    if (t->theirs.kind == 0)
        return dt_fail(t->code,
                       "rank %d called %s; others called something else, as rank %u noticed",
                       c->rank, dt_call_describe(ours, mine), t->rank);
    return dt_fail(t->code, "rank %d called %s; rank %u called %s%s", c->rank,
                   dt_call_describe(ours, mine), t->rank, dt_call_describe(&t->theirs, theirs),
                   strcmp(mine, theirs) == 0 ? ", with other counts" : "");
}

dt_result_t dt_blame(const struct dt_comm *c, const struct dt_call *call)
{
    const struct dt_trouble *t = &c->trouble;
    const char *why = dt_hostshm_why(&c->shm.map);
    char text[DT_CALL_TEXT];

    switch (t->code) {
    case DT_ERR_MISMATCH:
        return say_mismatch(c, call);
    case DT_ERR_PEER:
        if (t->rank == UINT32_MAX)
            return dt_fail(t->code, "rank %d: %s: dtrun-agent of this host has ended", c->rank,
                           dt_call_describe(call, text));
        if (*why && dt_hostshm_stopped(&c->shm.map, NULL) == DT_ERR_PEER)
            return dt_fail(t->code, "rank %d: %s: %s", c->rank, dt_call_describe(call, text), why);
        return dt_fail(t->code, "rank %d: %s: rank %u died or left", c->rank,
                       dt_call_describe(call, text), t->rank);
    case DT_ERR_TIMEOUT:
        if (*why)
            return dt_fail(t->code, "rank %d: %s: timed out: %s", c->rank,
                           dt_call_describe(call, text), why);
        return dt_fail(t->code, "rank %d: no connection with rank %u in %d s%s%s", c->rank, t->rank,
                       DT_MESH_CONNECT_S, t->error ? ": " : "",
                       t->error ? strerror(t->error) : "");
    default:
        return dt_fail(t->code, "rank %d: %s: rank %u failed: %s", c->rank,
                       dt_call_describe(call, text), t->rank, *why ? why : dt_strerror(t->code));
    }
}
