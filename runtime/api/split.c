#include "runtime/api/split.h"

#include <stdlib.h>

#include "runtime/api/create.h"
#include "runtime/comm/collective.h"
#include "runtime/comm/error_report.h"
#include "runtime/comm/slots.h"
#include "runtime/gpu/gpu.h"
#include "runtime/p2p/p2p.h"

static bool precedes(const struct dt_split_word *words, uint32_t a, uint32_t b)
{
    return words[a].key != words[b].key ? words[a].key < words[b].key : a < b;
}

uint32_t dt_split_members(const struct dt_split_word *words, uint32_t n, uint32_t me,
                          uint32_t *members)
{
    uint32_t count = 0;

    for (uint32_t rank = 0; rank < n; rank++) {
        uint32_t at = count;

        if (words[rank].color != words[me].color)
            continue;
        while (at > 0 && precedes(words, rank, members[at - 1])) {
            members[at] = members[at - 1];
            at--;
        }
        members[at] = rank;
        count++;
    }
    return count;
}

/* Unique in the job, because it contains the rank that makes it. The library's own communicator
 * has all ranks, so rank 0 makes it. */
static uint64_t new_id(struct dt_world *w, enum dt_call_kind kind)
{
    uint64_t maker = kind == DT_CALL_ISAVE ? 0 : (uint64_t)w->rank + 1;

    return maker << 32 | ++w->made;
}

/* Puts c into a slot before this rank waits for others, so that no stop is missed. */
static dt_result_t create_in_slot(struct dt_comm *c, const struct dt_comm *parent, uint64_t id,
                                  const uint32_t *ranks, uint32_t n)
{
    struct dt_world *w = parent->world;
    dt_result_t r = dt_comm_create(c, w, id, ranks, n);

    c->limit_ms = parent->limit_ms;
    if (r == DT_OK && !dt_slot_assign(c))
        r = dt_comm_fail(c, dt_fail(DT_ERR_NOMEM,
                                    "rank %d: there are %d communicators already: free some",
                                    w->rank, DT_SLOTS));
    return r;
}

void dt_comm_destroy(struct dt_comm *c)
{
    if (c->slot) {
        dt_slot_shut(c->slot);
        dt_p2p_finish(c);
        dt_slot_clear(c->slot);
    }
    dt_comm_release(c);
    free(c);
}

/* The result of a split on this rank. */
struct split_result {
    struct dt_comm *parent;
    const struct dt_split_word *words;
    uint32_t *members;    /* room for all ranks of parent */
    struct dt_comm *comm; /* NULL: this rank is in no new communicator */
    dt_result_t made;
};

static dt_result_t make_communicator(struct split_result *o)
{
    struct dt_comm *parent = o->parent;
    uint32_t n =
        dt_split_members(o->words, (uint32_t)parent->size, (uint32_t)parent->rank, o->members);
    uint64_t id = o->words[o->members[0]].id;

    o->comm = calloc(1, sizeof *o->comm);
    if (!o->comm) {
        dt_result_t r = dt_fail(DT_ERR_NOMEM, "rank %d: out of memory", parent->world->rank);

        dt_agentlink_failed(&parent->world->agent, id, r, (uint32_t)parent->world->rank,
                            dt_last_error(), true);
        return r;
    }
    for (uint32_t i = 0; i < n; i++)
        o->members[i] = parent->ranks[o->members[i]];
    return create_in_slot(o->comm, parent, id, o->members, n);
}

static void make_own_communicator(void *arg)
{
    struct split_result *o = arg;

    if (o->words[o->parent->rank].color)
        o->made = make_communicator(o);
}

/* A duplicate may be meant for another device, or for data on the host, so it connects by itself.
 */
static dt_result_t split_gpu(const struct split_result *o, enum dt_call_kind kind)
{
    uint64_t color = o->words[o->parent->rank].color;
    bool joins = o->comm && o->made == DT_OK && o->comm->size > 1;

    if (kind != DT_CALL_SPLIT)
        return DT_OK;
    return dt_gpu_split(o->parent, joins ? o->comm : NULL, (int)(color - 1));
}

/* r: the result of the call on parent. A rank that fails in that call before it has created the new
 * communicator cannot stop it for the others. So ranks wait for each other on it only if the call
 * has succeeded: then all have created it. */
static dt_result_t join_communicator(struct split_result *o, enum dt_call_kind kind, dt_result_t r)
{
    struct dt_comm *c = o->comm;

    if (o->made != DT_OK || !c)
        return r == DT_OK ? o->made : r;
    if (r == DT_OK)
        return dt_comm_join(c, kind);
    return dt_comm_fail(c, dt_coll_error(&c->coll_error, r, o->parent->coll_error.rank));
}

/* A failure to create the new communicator is reported for its parent. */
static void complete_error(const struct dt_comm *parent)
{
    const dt_error_info_t *e = dt_error_details();

    if (!*e->comm && e->rank < 0 && e->code != DT_ERR_PEER)
        dt_error_report_self(parent->world, parent->id);
}

/* The program has no handle with which to free it. */
static void discard_communicator(struct dt_comm *c)
{
    dt_comm_mark_handled(c);
    dt_comm_destroy(c);
}

/* The words of all ranks, and behind them room for the members. */
struct dt_split_word *dt_split_alloc(const struct dt_comm *parent)
{
    return calloc((size_t)parent->size, sizeof(struct dt_split_word) + sizeof(uint32_t));
}

dt_result_t dt_comm_split_into(struct dt_comm *parent, enum dt_call_kind kind, uint64_t color,
                               int64_t key, struct dt_split_word *words, struct dt_comm **out)
{
    struct split_result o = { .parent = parent, .words = words };
    dt_result_t r;

    *out = NULL;
    if (!words) {
        r = dt_comm_fail_no_memory(parent);
    } else {
        struct dt_world *w = parent->world;

        /* before any rank knows the new communicator and can stop it */
        atomic_fetch_add(&w->shm.ranks[w->local_rank].joining, 1);
        o.members = (uint32_t *)(words + parent->size);
        words[parent->rank] = (struct dt_split_word){ color, key, new_id(w, kind) };
        r = dt_comm_all_gather_table_then(parent, kind, words, sizeof *words, make_own_communicator,
                                          &o);
        if (r == DT_OK)
            r = split_gpu(&o, kind);
        r = join_communicator(&o, kind, r);
        atomic_fetch_sub(&w->shm.ranks[w->local_rank].joining, 1);
    }
    if (r == DT_OK)
        *out = o.comm;
    else
        complete_error(parent);
    if (r != DT_OK && o.comm)
        discard_communicator(o.comm);
    free(words);
    return r;
}
