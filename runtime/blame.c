#include "runtime/blame.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TEXT = DT_CALL_TEXT + 64 };

/* "barrier, call 7 on communicator 3.2": the second of which rank 3 of the job is the first. */
static const char *describe(const struct dt_comm *c, const struct dt_call *call, char text[TEXT])
{
    dt_call_describe(call, text);
    if (c->id)
        snprintf(text + strlen(text), 64, " on communicator %" PRIu64 ".%" PRIu64,
                 (c->id >> 32) - 1, c->id & UINT32_MAX);
    return text;
}

/* What differs between calls that are told alike. */
static const char *unsaid(const struct dt_call *call, bool alike)
{
    if (!alike)
        return "";
    return call->kind == DT_CALL_ALL_REDUCE ? ", with other options" : ", with other counts";
}

static dt_result_t say_mismatch(const struct dt_comm *c, const struct dt_trouble *t,
                                const struct dt_call *ours)
{
    const char *why = dt_hostshm_why(&c->shm.map);
    char mine[TEXT], theirs[TEXT];
    int me = c->world->rank;

    describe(c, ours, mine);
    if (t->given != t->expected)
        return dt_fail(t->code,
                       "rank %d called %s; there rank %u gives %" PRIu64
                       " elements to rank %u, which expects %" PRIu64,
                       me, mine, t->giver, t->given, t->taker, t->expected);
    if (t->theirs.kind == 0 && *why)
        return dt_fail(t->code, "rank %d called %s; elsewhere %s", me, mine, why);
    if (t->theirs.kind == 0)
        return dt_fail(t->code,
                       "rank %d called %s; others called something else, as rank %u noticed", me,
                       mine, t->rank);
    describe(c, &t->theirs, theirs);
    return dt_fail(t->code, "rank %d called %s; rank %u called %s%s", me, mine, t->rank, theirs,
                   unsaid(ours, strcmp(mine, theirs) == 0));
}

dt_result_t dt_blame(const struct dt_comm *c, const struct dt_trouble *t,
                     const struct dt_call *call)
{
    const char *why = dt_hostshm_why(&c->shm.map);
    int me = c->world->rank;
    char text[TEXT];

    describe(c, call, text);
    switch (t->code) {
    case DT_ERR_MISMATCH:
        return say_mismatch(c, t, call);
    case DT_ERR_PEER:
        if (t->rank == UINT32_MAX)
            return dt_fail(t->code, "rank %d: %s: dtrun-agent of this host has ended", me, text);
        if (*why && dt_hostshm_stopped(&c->shm.map, NULL) == DT_ERR_PEER)
            return dt_fail(t->code, "rank %d: %s: %s", me, text, why);
        return dt_fail(t->code, "rank %d: %s: rank %u died or left", me, text, t->rank);
    case DT_ERR_TIMEOUT:
        if (*why)
            return dt_fail(t->code, "rank %d: %s: timed out: %s", me, text, why);
        return dt_fail(t->code, "rank %d: no connection with rank %u in %d s%s%s", me, t->rank,
                       DT_MESH_CONNECT_S, t->error ? ": " : "", t->error ? strerror(t->error) : "");
    case DT_ERR_ABORTED:
        return dt_fail(t->code, "rank %d: %s: rank %u called dt_comm_abort", me, text, t->rank);
    default:
        return dt_fail(t->code, "rank %d: %s: rank %u failed: %s", me, text, t->rank,
                       *why       ? why
                       : t->error ? strerror(t->error)
                                  : dt_strerror(t->code));
    }
}
