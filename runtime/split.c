#include "runtime/split.h"

#include <stdlib.h>

#include "runtime/collective.h"
#include "runtime/joining.h"
#include "runtime/slots.h"
#include "runtime/ways.h"

static bool goes_before(const struct dt_split_word *words, uint32_t a, uint32_t b)
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
        while (at > 0 && goes_before(words, rank, members[at - 1])) {
            members[at] = members[at - 1];
            at--;
        }
        members[at] = rank;
        count++;
    }
    return count;
}

/* Unique in the job: it names the rank that has made it up. */
static uint64_t new_id(struct dt_world *w)
{
    return ((uint64_t)w->rank + 1) << 32 | ++w->made;
}

/* In a slot from before it waits for anybody, so that what stops it is not missed. */
static dt_result_t settle(struct dt_comm *c, const struct dt_comm *parent, uint64_t id,
                          const uint32_t *ranks, uint32_t n)
{
    struct dt_world *w = parent->world;
    dt_result_t r = dt_comm_create(c, w, id, ranks, n);

    if (r == DT_OK)
        dt_comm_set_limit(c, dt_comm_limit(parent));
    if (r == DT_OK && !(c->slot = dt_slot_find(c)))
        r = dt_comm_fail(c, dt_fail(DT_ERR_NOMEM,
                                    "rank %d: there are %d communicators already: free some",
                                    w->rank, DT_SLOTS));
    return r == DT_OK ? dt_comm_join(c) : r;
}

void dt_comm_destroy(struct dt_comm *c)
{
    if (c->slot) {
        dt_slot_shut(c->slot);
        dt_ways_finish(c);
        dt_slot_clear(c->slot);
    }
    dt_comm_release(c);
    free(c);
}

/* members: room for as many ranks as parent has. */
static dt_result_t make(struct dt_comm *parent, const struct dt_split_word *words,
                        uint32_t *members, struct dt_comm **out)
{
    uint32_t n = dt_split_members(words, (uint32_t)parent->size, (uint32_t)parent->rank, members);
    uint64_t id = words[members[0]].id;
    struct dt_comm *c = calloc(1, sizeof *c);
    dt_result_t r;

    if (!c) {
        r = dt_fail(DT_ERR_NOMEM, "rank %d: out of memory", parent->world->rank);
        dt_agentlink_failed(&parent->world->agent, id, r, (uint32_t)parent->world->rank,
                            dt_last_error(), true);
        return r;
    }
    for (uint32_t i = 0; i < n; i++)
        members[i] = parent->ranks[members[i]];
    r = settle(c, parent, id, members, n);
    if (r == DT_OK)
        *out = c;
    else
        dt_comm_destroy(c);
    return r;
}

dt_result_t dt_comm_split_into(struct dt_comm *parent, enum dt_call_kind kind, uint64_t color,
                               int64_t key, struct dt_comm **out)
{
    size_t n = (size_t)parent->size;
    struct dt_split_word *words = calloc(n, sizeof *words);
    uint32_t *members = calloc(n, sizeof *members);
    dt_result_t r;

    *out = NULL;
    if (!words || !members) {
        r = dt_comm_fail(parent,
                         dt_fail(DT_ERR_NOMEM, "rank %d: out of memory", parent->world->rank));
    } else {
        struct dt_world *w = parent->world;

        /* Before any rank can know of the new one, and stop it. */
        atomic_fetch_add(&w->shm.ranks[w->local_rank].joining, 1);
        words[parent->rank] = (struct dt_split_word){ color, key, new_id(w) };
        r = dt_comm_show(parent, kind, words, sizeof *words);
        if (r == DT_OK && color)
            r = make(parent, words, members, out);
        atomic_fetch_sub(&w->shm.ranks[w->local_rank].joining, 1);
    }
    free(words);
    free(members);
    return r;
}
