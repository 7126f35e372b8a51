#include "runtime/comm/error_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "runtime/base/reduceoptions.h"

enum { TEXT = DT_CALL_TEXT + 96 };

/* The parts of the sentences. */
struct words {
    char me[DT_WORLD_NAME];
    char culprit[DT_WORLD_NAME];
    char call[TEXT];
    char ending[DT_HOSTSHM_ENDING];
    const char *why; /* why the communicator was stopped, or "" */
};

/* Writes "barrier, call 7 on communicator 3.2" (world.h). */
static void describe_with_comm(const struct dt_comm *c, const struct dt_call *call, char text[TEXT])
{
    char name[DT_COMM_NAME];

    if (call)
        dt_call_describe(call, text);
    else
        snprintf(text, TEXT, "between two calls");
    if (c->id)
        snprintf(text + strlen(text), 64, " on communicator %s", dt_comm_name(c->id, name));
}

/* For an announcement, which is internal, describes the call that the program made. */
static void describe_call(const struct dt_comm *c, const struct dt_call *call, char text[TEXT])
{
    struct dt_call next;

    if (!call || call->kind != DT_CALL_UNEVEN) {
        describe_with_comm(c, call, text);
        return;
    }
    next = c->next; /* only this thread reads it */
    next.number = call->number;
    describe_with_comm(c, &next, text);
    if (next.kind != DT_CALL_JOIN)
        snprintf(text + strlen(text), 32, ", after dt_join_begin");
}

static void find_report_words(struct words *w, const struct dt_comm *c,
                              const struct dt_coll_error *t, const struct dt_call *call)
{
    dt_world_name(c->world, (uint32_t)c->world->rank, w->me);
    dt_world_name(c->world, t->rank, w->culprit);
    dt_hostshm_ending_text(&c->world->shm, t->rank, w->ending);
    w->why = t->why ? t->why : dt_hostshm_why(&c->shm.map);
    describe_call(c, call, w->call);
}

/* What differs between two calls with the same description. */
static const char *difference_in_words(const struct dt_call *call, bool alike)
{
    if (!alike)
        return "";
    if (call->kind == DT_CALL_INIT)
        return ", with another choice of deterministic sums (DTRUN_DETERMINISTIC)";
    if (call->kind == DT_CALL_ALL_REDUCE && dt_reduceoptions_buffers(call->options))
        return ", with other counts or in another order";
    return call->kind == DT_CALL_ALL_REDUCE ? ", with other options" : ", with other counts";
}

/* Passes on another rank's text about its own call and a third rank's: "rank 0 called this; rank 1
 * called that". If this rank is one of the two, its call comes first. */
static dt_result_t report_others(const struct dt_coll_error *t, const struct words *w)
{
    char mine[DT_WORLD_NAME + 16];
    const char *after;

    snprintf(mine, sizeof mine, "; %s called ", w->me);
    if (strncmp(w->why, mine + 2, strlen(mine + 2)) == 0)
        return dt_fail(t->code, "%s", w->why);
    after = strstr(w->why, mine);
    if (after)
        return dt_fail(t->code, "%s; %.*s", after + 2, (int)(after - w->why), w->why);
    return dt_fail(t->code, "%s called %s; elsewhere %s", w->me, w->call, w->why);
}

static dt_result_t report_mismatch(const struct dt_comm *c, const struct dt_coll_error *t,
                                   const struct words *w, const struct dt_call *ours)
{
    char theirs[TEXT];

    if (t->given != t->expected)
        return dt_fail(t->code,
                       "%s called %s; there rank %u gives %" PRIu64
                       " elements to rank %u, which expects %" PRIu64,
                       w->me, w->call, t->giver, t->given, t->taker, t->expected);
    if (t->theirs.kind == 0 && *w->why)
        return report_others(t, w);
    if (t->theirs.kind == 0)
        return dt_fail(t->code,
                       "%s called %s; the calls of %s and another rank do not match, and "
                       "dtrun-agent has not reported them",
                       w->me, w->call, w->culprit);
    describe_with_comm(c, &t->theirs, theirs);
    return dt_fail(t->code, "%s called %s; %s called %s%s", w->me, w->call, w->culprit, theirs,
                   difference_in_words(ours, strcmp(w->call, theirs) == 0));
}

const char *dt_error_report_others(const struct dt_comm *c, const struct dt_coll_error *one,
                                   const struct dt_coll_error *other,
                                   char text[DT_ERROR_REPORT_OTHERS])
{
    char first[DT_WORLD_NAME], second[DT_WORLD_NAME], x[TEXT], y[TEXT];

    describe_with_comm(c, &one->theirs, x);
    describe_with_comm(c, &other->theirs, y);
    snprintf(text, DT_ERROR_REPORT_OTHERS, "%s called %s; %s called %s%s",
             dt_world_name(c->world, one->rank, first), x,
             dt_world_name(c->world, other->rank, second), y,
             difference_in_words(&one->theirs, strcmp(x, y) == 0));
    return text;
}

/* The rank that failed names itself in its text. */
static dt_result_t report_failure(const struct dt_coll_error *t, const struct words *w)
{
    const char *what = *w->why ? w->why : t->error ? strerror(t->error) : dt_strerror(t->code);
    size_t n = strlen(w->me);

    if (strncmp(what, w->me, n) == 0 && strncmp(what + n, ": ", 2) == 0)
        what += n + 2;
    if (strcmp(w->culprit, w->me) == 0 || strncmp(what, w->culprit, strlen(w->culprit)) == 0)
        return dt_fail(t->code, "%s: %s: %s", w->me, w->call, what);
    return dt_fail(t->code, "%s: %s: %s failed: %s", w->me, w->call, w->culprit, what);
}

static dt_result_t report_cause(const struct dt_comm *c, const struct dt_coll_error *t,
                                const struct words *w, const struct dt_call *call)
{
    switch (t->code) {
    case DT_ERR_MISMATCH:
        if (call)
            return report_mismatch(c, t, w, call);
        break;
    case DT_ERR_PEER:
        if (t->rank == UINT32_MAX)
            return dt_fail(t->code, "%s: %s: dtrun-agent of this host has ended", w->me, w->call);
        if (*w->why && dt_hostshm_stopped(&c->shm.map, NULL) == DT_ERR_PEER)
            return dt_fail(t->code, "%s: %s: %s", w->me, w->call, w->why);
        if (t->error && !*w->ending)
            return dt_fail(t->code, "%s: %s: the connection with %s broke: %s", w->me, w->call,
                           w->culprit, strerror(t->error));
        return dt_fail(t->code, "%s: %s: %s died or left%s", w->me, w->call, w->culprit, w->ending);
    case DT_ERR_TIMEOUT:
        if (*w->why)
            return dt_fail(t->code, "%s: %s: timed out: %s", w->me, w->call, w->why);
        return dt_fail(t->code, "%s: %s: no connection with %s in %d s: %s", w->me, w->call,
                       w->culprit, DT_MESH_CONNECT_S,
                       t->error ? strerror(t->error) : "no answer; is there a firewall?");
    case DT_ERR_ABORTED:
        return dt_fail(t->code, "%s: %s: %s called dt_comm_abort", w->me, w->call, w->culprit);
    default:
        break;
    }
    return report_failure(t, w);
}

/* Stores how the rank that caused the failure ended, as far as this host knows. */
static void add_ending(const struct dt_comm *c, const struct dt_coll_error *t, dt_error_info_t *e)
{
    uint32_t ending = dt_hostshm_ending(&c->world->shm, t->rank);
    int status = (int)(ending & (DT_HOSTSHM_ENDED - 1));

    if (ending && WIFSIGNALED(status))
        e->signal = WTERMSIG(status);
    else if (ending)
        e->status = WEXITSTATUS(status);
}

void dt_error_report_call(enum dt_call_kind kind)
{
    dt_error_info_t *e = dt_error_details();

    snprintf(e->operation, sizeof e->operation, "%s", dt_hostshm_call_name(kind));
}

void dt_error_report_self(const struct dt_world *w, uint64_t comm)
{
    dt_error_info_t *e = dt_error_details();

    e->rank = w->rank;
    snprintf(e->host, sizeof e->host, "%s", w->host);
    dt_comm_name(comm, e->comm);
}

dt_result_t dt_error_report_refusal(const struct dt_world *w, uint64_t comm, enum dt_call_kind kind,
                                    dt_result_t r)
{
    if (r == DT_OK)
        return r;
    dt_error_report_call(kind);
    if (w)
        dt_error_report_self(w, comm);
    return r;
}

/* The rank that caused the failure. If another rank reported a mismatch with this rank, t blames
 * this rank, and the text names the other rank second. */
static uint32_t culprit_of(const struct dt_comm *c, const struct dt_coll_error *t)
{
    const char *second = strstr(dt_last_error(), "; rank ");
    uint32_t rank = t->rank;

    if (t->code == DT_ERR_MISMATCH && rank == (uint32_t)c->world->rank && second)
        sscanf(second, "; rank %" SCNu32, &rank);
    return rank;
}

/* Fills in dt_last_error_info. */
static void add_details(const struct dt_comm *c, const struct dt_coll_error *t,
                        const struct dt_call *call, const struct dt_ring *ring)
{
    dt_error_info_t *e = dt_error_details();
    uint32_t culprit = culprit_of(c, t);

    if (culprit < (uint32_t)c->world->size) {
        e->rank = (int)culprit;
        snprintf(e->host, sizeof e->host, "%s", dt_world_host(c->world, culprit));
    }
    if (t->code == DT_ERR_PEER)
        add_ending(c, t, e);
    e->error = t->error;
    dt_comm_name(c->id, e->comm);
    if (!call)
        return;
    e->call = call->number;
    e->seconds = dt_ring_seconds(ring);
    dt_error_report_call(call->kind == DT_CALL_UNEVEN ? c->next.kind : call->kind);
}

dt_result_t dt_error_report(const struct dt_comm *c, const struct dt_coll_error *t,
                            const struct dt_call *call, const struct dt_ring *ring)
{
    struct words words;
    dt_result_t r;

    find_report_words(&words, c, t, call);
    r = report_cause(c, t, &words, call);
    add_details(c, t, call, ring);
    return r;
}
