#include "runtime/blame.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TEXT = DT_CALL_TEXT + 64 };

/* What sentences are made of. */
struct words {
    char me[DT_WORLD_NAME];
    char culprit[DT_WORLD_NAME];
    char call[TEXT];
    const char *why; /* of what has stopped the communicator; or "" */
};

/* "barrier, call 7 on communicator 3.2": the second of which rank 3 of the job is the first. */
static const char *describe(const struct dt_comm *c, const struct dt_call *call, char text[TEXT])
{
    char name[DT_COMM_NAME];

    dt_call_describe(call, text);
    if (c->id)
        snprintf(text + strlen(text), 64, " on communicator %s", dt_comm_name(c->id, name));
    return text;
}

static void find_words(struct words *w, const struct dt_comm *c, const struct dt_trouble *t,
                       const struct dt_call *call)
{
    dt_world_name(c->world, (uint32_t)c->world->rank, w->me);
    dt_world_name(c->world, t->rank, w->culprit);
    w->why = dt_hostshm_why(&c->shm.map);
    if (call)
        describe(c, call, w->call);
    else
        snprintf(w->call, sizeof w->call, "between two calls");
}

/* What differs between calls that are told alike. */
static const char *unsaid(const struct dt_call *call, bool alike)
{
    if (!alike)
        return "";
    if (call->kind == DT_CALL_INIT)
        return ", with another choice of deterministic sums (DTRUN_DETERMINISTIC)";
    return call->kind == DT_CALL_ALL_REDUCE ? ", with other options" : ", with other counts";
}

static dt_result_t say_mismatch(const struct dt_comm *c, const struct dt_trouble *t,
                                const struct words *w, const struct dt_call *ours)
{
    char theirs[TEXT];

    if (t->given != t->expected)
        return dt_fail(t->code,
                       "%s called %s; there rank %u gives %" PRIu64
                       " elements to rank %u, which expects %" PRIu64,
                       w->me, w->call, t->giver, t->given, t->taker, t->expected);
    if (t->theirs.kind == 0 && *w->why)
        return dt_fail(t->code, "%s called %s; elsewhere %s", w->me, w->call, w->why);
    if (t->theirs.kind == 0)
        return dt_fail(t->code, "%s called %s; others called something else, as %s noticed", w->me,
                       w->call, w->culprit);
    describe(c, &t->theirs, theirs);
    return dt_fail(t->code, "%s called %s; %s called %s%s", w->me, w->call, w->culprit, theirs,
                   unsaid(ours, strcmp(w->call, theirs) == 0));
}

static dt_result_t say(const struct dt_comm *c, const struct dt_trouble *t, const struct words *w,
                       const struct dt_call *call)
{
    switch (t->code) {
    case DT_ERR_MISMATCH:
        if (call)
            return say_mismatch(c, t, w, call);
        break;
    case DT_ERR_PEER:
        if (t->rank == UINT32_MAX)
            return dt_fail(t->code, "%s: %s: dtrun-agent of this host has ended", w->me, w->call);
        if (*w->why && dt_hostshm_stopped(&c->shm.map, NULL) == DT_ERR_PEER)
            return dt_fail(t->code, "%s: %s: %s", w->me, w->call, w->why);
        return dt_fail(t->code, "%s: %s: %s died or left", w->me, w->call, w->culprit);
    case DT_ERR_TIMEOUT:
        if (*w->why)
            return dt_fail(t->code, "%s: %s: timed out: %s", w->me, w->call, w->why);
        return dt_fail(t->code, "%s: %s: no connection with %s in %d s%s%s", w->me, w->call,
                       w->culprit, DT_MESH_CONNECT_S, t->error ? ": " : "",
                       t->error ? strerror(t->error) : "");
    case DT_ERR_ABORTED:
        return dt_fail(t->code, "%s: %s: %s called dt_comm_abort", w->me, w->call, w->culprit);
    default:
        break;
    }
    return dt_fail(t->code, "%s: %s: %s failed: %s", w->me, w->call, w->culprit,
                   *w->why    ? w->why
                   : t->error ? strerror(t->error)
                              : dt_strerror(t->code));
}

/* The same for programs. */
static void tell_details(const struct dt_comm *c, const struct dt_trouble *t,
                         const struct dt_call *call)
{
    dt_error_info_t *e = dt_error_details();

    if (t->rank < (uint32_t)c->world->size) {
        e->rank = (int)t->rank;
        snprintf(e->host, sizeof e->host, "%s", dt_world_host(c->world, t->rank));
    }
    e->error = t->error;
    dt_comm_name(c->id, e->comm);
    if (!call)
        return;
    e->call = call->number;
    e->seconds = dt_ring_seconds(c->shm.ring);
    snprintf(e->operation, sizeof e->operation, "%s", dt_hostshm_call_name(call->kind));
}

dt_result_t dt_blame(const struct dt_comm *c, const struct dt_trouble *t,
                     const struct dt_call *call)
{
    struct words words;
    dt_result_t r;

    find_words(&words, c, t, call);
    r = say(c, t, &words, call);
    tell_details(c, t, call);
    return r;
}
