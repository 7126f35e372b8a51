#include "runtime/comm/comm.h"

#include <assert.h>
#include <sys/eventfd.h>

#include "runtime/comm/error_report.h"
#include "runtime/diag/dump.h"
#include "runtime/tcp/flow.h"

static_assert((int)DT_HOSTSHM_MISMATCH == (int)DT_ERR_MISMATCH &&
                  (int)DT_HOSTSHM_PEER_DIED == (int)DT_ERR_PEER &&
                  (int)DT_HOSTSHM_TIMED_OUT == (int)DT_ERR_TIMEOUT,
              "the agent uses the error codes of libdtrun");

enum { BRIEF = 8192 }; /* elements */

/* ---- failing ---- */

void dt_comm_wake(struct dt_comm *c)
{
    if (c->bell >= 0)
        eventfd_write(c->bell, 1);
}

/* Counts neither aborts, which the program wants, nor lost peers, which the agent sees, nor
 * failures of DT_WORLD, which end the job. */
static void count_failure(struct dt_comm *c, dt_result_t result)
{
    int none = DT_COMM_UNCOUNTED;

    if (c->id == 0 || result == DT_ERR_ABORTED || result == DT_ERR_PEER)
        return;
    if (atomic_compare_exchange_strong(&c->counted, &none, DT_COMM_COUNTED))
        atomic_fetch_add(&c->world->shm.ranks[c->world->local_rank].failed, 1);
}

void dt_comm_mark_handled(struct dt_comm *c)
{
    if (atomic_exchange(&c->counted, DT_COMM_HANDLED) == DT_COMM_COUNTED)
        atomic_fetch_sub(&c->world->shm.ranks[c->world->local_rank].failed, 1);
}

void dt_comm_stop(struct dt_comm *c, dt_result_t result, uint32_t culprit, const char *why)
{
    count_failure(c, result);
    dt_world_stop(c->world, c->id, &c->shm.map, result, culprit, why);
    dt_comm_wake(c);
}

dt_result_t dt_comm_fail(struct dt_comm *c, dt_result_t result)
{
    if (!dt_result_is_final(result) || c->failed != DT_OK)
        return result;
    c->failed = result;
    dt_error_save(&c->error);
    if (c->coll_error.code != result)
        dt_coll_error(&c->coll_error, result, (uint32_t)c->world->rank);
    if (c->shm.map.head) {
        dt_comm_stop(c, result, c->coll_error.rank, c->error.message);
    } else { /* this rank has no shared memory for c, but others may: their agents tell them */
        count_failure(c, result);
        dt_agentlink_failed(&c->world->agent, c->id, result, c->coll_error.rank, c->error.message,
                            true);
    }
    dt_flow_fail(&c->mesh, result);
    dt_dump_failure(c->world, c->id);
    return result;
}

dt_result_t dt_comm_fail_outside(struct dt_comm *c)
{
    return dt_comm_fail(c, dt_error_report(c, &c->coll_error, NULL, c->shm.ring));
}

dt_result_t dt_comm_fail_no_memory(struct dt_comm *c)
{
    dt_comm_no_memory(c);
    return dt_comm_fail_outside(c);
}

/* If this is the communicator's only rank, no other rank passes on what has stopped the job. */
static int find_stop(const struct dt_comm *c, uint32_t *culprit)
{
    int code = dt_hostshm_stopped(&c->shm.map, culprit);

    return code || c->size > 1 ? code : dt_hostshm_stopped(&c->world->shm, culprit);
}

bool dt_comm_stopped(const struct dt_comm *c)
{
    return find_stop(c, NULL);
}

dt_result_t dt_comm_check_stop(const struct dt_comm *c, struct dt_coll_error *t)
{
    uint32_t culprit;
    int stopped = find_stop(c, &culprit);

    return stopped ? dt_coll_error(t, (dt_result_t)stopped, culprit) : DT_OK;
}

dt_result_t dt_comm_check(struct dt_comm *c)
{
    if (c->failed != DT_OK)
        return dt_error_restore(&c->error);
    return dt_comm_check_stop(c, &c->coll_error) == DT_OK ? DT_OK : dt_comm_fail_outside(c);
}

/* ---- calls ---- */

/* Tells the agent which call this rank is in. With several hosts it also passes on a signature, by
 * which dtrun compares the ranks' calls. 0: this call is not compared. */
static void note_call(struct dt_comm *c, const struct dt_call *call, uint64_t signature)
{
    struct dt_hostshm_rank *me = &c->shm.map.ranks[c->local_rank];

    if (c->nodes > 1)
        dt_hostshm_note_signature(me, signature);
    dt_hostshm_note_limit(me, c->limit_ms);
    dt_hostshm_note_call(me, call->number, DT_HOSTSHM_INSIDE | call->kind);
}

/* A call of this rank alone. It has the number of the collective before it. */
static struct dt_call call_aside(const struct dt_comm *c, enum dt_call_kind kind)
{
    return (struct dt_call){ .number = c->calls, .kind = (uint8_t)kind, .root = -1 };
}

static void note_outside(struct dt_comm *c, const struct dt_call *call)
{
    if (c->watched) {
        const struct dt_call wait = call_aside(c, DT_CALL_GPU_COPY);

        note_call(c, &wait, 0);
    } else {
        dt_hostshm_note_call(&c->shm.map.ranks[c->local_rank], call->number, call->kind);
    }
}

void dt_comm_watch(struct dt_comm *c, bool on)
{
    const struct dt_call last = { .number = c->calls, .kind = c->last };

    c->watched = on;
    note_outside(c, &last);
}

/* Whether the call takes microseconds, unless a rank is late. */
static bool is_brief(const struct dt_comm *c, const struct dt_call *call)
{
    return c->nodes == 1 && call->kind <= DT_CALL_BROADCAST && call->count <= BRIEF;
}

static void record_begin(struct dt_comm *c, const struct dt_call *call)
{
    c->shm.algorithm = c->local_size > 1 ? "shm" : NULL;
    c->leaders.algorithm = c->nodes > 1 ? "tcp" : NULL;
    dt_ring_begin(c->shm.ring, call);
    if (!is_brief(c, call))
        dt_ring_mark_long(c->shm.ring);
}

static void record_end(struct dt_comm *c, dt_result_t r)
{
    dt_ring_end(c->shm.ring, r, c->shm.algorithm, c->leaders.algorithm);
}

static dt_result_t end_call(struct dt_comm *c, const struct dt_call *call, dt_result_t r)
{
    record_end(c, r);
    if (r != DT_OK)
        r = dt_comm_fail(c, dt_error_report(c, &c->coll_error, call, c->shm.ring));
    note_outside(c, call); /* last, so that a rank that lost a peer is seen either in the call or
                              with the failure */
    return r;
}

void dt_comm_count(struct dt_comm *c, struct dt_call *call)
{
    call->number = ++c->calls;
}

void dt_comm_note(struct dt_comm *c, const struct dt_call *call)
{
    c->last = call->kind;
    note_call(c, call, dt_call_signature(call));
    record_begin(c, call);
}

void dt_comm_pass_for(struct dt_comm *c, const struct dt_call *call, enum dt_call_kind kind)
{
    dt_hostshm_note_call(&c->shm.map.ranks[c->local_rank], call->number, DT_HOSTSHM_INSIDE | kind);
}

dt_result_t dt_comm_begin(struct dt_comm *c, struct dt_call *call, enum dt_call_kind kind)
{
    dt_result_t r;

    call->kind = (uint8_t)kind;
    call->device |= c->on_device;
    if (c->announce && !c->announcing && c->failed == DT_OK && kind != DT_CALL_FREE &&
        kind != DT_CALL_FINALIZE) {
        r = c->announce(c, call);
        if (r != DT_OK)
            return r;
    }
    dt_comm_count(c, call);
    if (c->failed != DT_OK)
        return dt_error_restore(&c->error);
    dt_comm_note(c, call);
    r = dt_comm_check_stop(c, &c->coll_error);
    return r == DT_OK ? DT_OK : end_call(c, call, r);
}

dt_result_t dt_comm_aside(struct dt_comm *c, enum dt_call_kind kind,
                          dt_result_t (*work)(struct dt_comm *c, void *arg), void *arg)
{
    struct dt_call call = call_aside(c, kind);
    dt_result_t r;

    if (c->failed != DT_OK)
        return dt_error_restore(&c->error);
    note_call(c, &call, 0);
    record_begin(c, &call);
    c->shm.algorithm = "cuda";
    c->leaders.algorithm = NULL;
    r = work(c, arg);
    return end_call(c, &call, r);
}

/* In the call that creates c, an abort or a mismatch cannot come from a rank in that call: all
 * ranks make the same one, and no program has c yet. It comes from a rank that has already left the
 * call and then failed or aborted c. This rank's next call reports it. */
static bool failed_after_creation(const struct dt_comm *c, const struct dt_call *call,
                                  dt_result_t r)
{
    return (r == DT_ERR_MISMATCH || r == DT_ERR_ABORTED) && c->id != 0 && call->number == 1;
}

dt_result_t dt_comm_end(struct dt_comm *c, const struct dt_call *call, dt_result_t r)
{
    return end_call(c, call, failed_after_creation(c, call, r) ? DT_OK : r);
}

dt_result_t dt_comm_no_memory(struct dt_comm *c)
{
    return dt_coll_error(&c->coll_error, DT_ERR_NOMEM, (uint32_t)c->world->rank);
}
