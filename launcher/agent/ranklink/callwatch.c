#include "launcher/agent/ranklink/callwatch.h"

#include <stdlib.h>

#include "launcher/base/mem.h"

struct dt_callseen {
    uint64_t call;
    uint64_t signature; /* 0: not known */
    uint64_t since_ns;
    uint32_t limit_ms;
    uint32_t waited_ms; /* how long the rank had waited when it noted the call */
};

/* If the call changes while this function reads it, the other values may belong to the next call,
 * so they count as unknown until the next look. */
static struct dt_callseen see_collective(const struct dt_hostshm_rank *r)
{
    uint64_t before = atomic_load(&r->call), signature = atomic_load(&r->signature);
    uint32_t limit_ms = atomic_load(&r->limits_ms[0]);
    uint64_t call = atomic_load(&r->call);
    bool known = call == before && (call & DT_HOSTSHM_INSIDE);

    return (struct dt_callseen){ .call = call,
                                 .signature = known ? signature : 0,
                                 .limit_ms = known ? limit_ms : DT_HOSTSHM_NO_LIMIT };
}

static struct dt_callseen see_pair(const struct dt_hostshm_rank *r, uint32_t i)
{
    uint32_t turn = atomic_load(&r->turns[i]);
    uint64_t call = atomic_load(&r->pairs[i]);
    uint32_t limit_ms = atomic_load(&r->limits_ms[1 + i]);
    uint32_t waited_ms = atomic_load(&r->waited_ms[i]);
    bool known = (call & DT_HOSTSHM_INSIDE) && atomic_load(&r->turns[i]) == turn;

    return (struct dt_callseen){ .call = call,
                                 .limit_ms = known ? limit_ms : DT_HOSTSHM_NO_LIMIT,
                                 .waited_ms = known ? waited_ms : 0 };
}

/* before is the same call at the last look, or NULL if it was not seen. */
static uint64_t since(const struct dt_callwatch *w, const struct dt_callseen *now,
                      const struct dt_callseen *before, uint64_t now_ns)
{
    uint64_t waited_ns = now->waited_ms * 1000000ull, most_ns = now_ns - w->first_ns;
    uint64_t since_ns = now_ns - (waited_ns < most_ns ? waited_ns : most_ns);

    return before && before->since_ns < since_ns ? before->since_ns : since_ns;
}

uint64_t dt_callwatch_look(struct dt_callwatch *w, const struct dt_hostshm *shm, uint64_t now_ns)
{
    bool first = !w->seen;
    uint64_t since_ns = UINT64_MAX;

    if (first) {
        w->seen = dt_xcalloc(shm->local_size, DT_HOSTSHM_PLACES * sizeof *w->seen);
        w->first_ns = now_ns;
    }
    for (uint32_t i = 0; i < shm->local_size * DT_HOSTSHM_PLACES; i++) {
        const struct dt_hostshm_rank *r = &shm->ranks[i / DT_HOSTSHM_PLACES];
        uint32_t place = i % DT_HOSTSHM_PLACES;
        struct dt_callseen now = place ? see_pair(r, place - 1) : see_collective(r);
        bool lasts = !first && now.call == w->seen[i].call;

        now.since_ns = since(w, &now, lasts ? &w->seen[i] : NULL, now_ns);
        w->seen[i] = now;
        if (lasts && (now.call & DT_HOSTSHM_INSIDE) && now.since_ns < since_ns)
            since_ns = now.since_ns;
    }
    return since_ns == UINT64_MAX ? 0 : since_ns;
}

bool dt_callwatch_is_inside(const struct dt_hostshm_rank *r)
{
    bool inside = (atomic_load(&r->call) & DT_HOSTSHM_INSIDE) != 0;

    for (uint32_t i = 0; i < DT_HOSTSHM_PAIRS; i++)
        inside |= (atomic_load(&r->pairs[i]) & DT_HOSTSHM_INSIDE) != 0;
    return inside;
}

/* Returns false if some rank of this host has not written its member yet. */
static bool read_members(const struct dt_hostshm *shm, struct dt_u32s *members)
{
    *members = (struct dt_u32s){ dt_xcalloc(shm->size, sizeof *members->v), shm->size };
    for (uint32_t rank = 0; rank < shm->size; rank++) {
        uint32_t word = atomic_load_explicit(&shm->members[rank], memory_order_relaxed);

        if (word == 0) {
            free(members->v);
            *members = (struct dt_u32s){ 0 };
            return false;
        }
        members->v[rank] = word - 1;
    }
    return true;
}

/* Adds the calls of local rank i of the communicator. */
static void add_calls(const struct dt_callwatch *w, uint32_t i, uint32_t rank, uint64_t now_ns,
                      struct dt_msg_list *list)
{
    for (uint32_t place = 0; place < DT_HOSTSHM_PLACES; place++) {
        const struct dt_callseen *seen = &w->seen[i * DT_HOSTSHM_PLACES + place];

        if (place > 0 && seen->call == 0)
            continue;
        ((struct dt_msg_called *)list->v)[list->n++] = (struct dt_msg_called){
            .rank = rank,
            .place = (uint8_t)place,
            .call = seen->call,
            .signature = seen->signature,
            .limit_ms = seen->limit_ms,
            .waited_ms = (uint32_t)((now_ns - seen->since_ns) / 1000000),
        };
    }
}

void dt_callwatch_report(const struct dt_callwatch *w, const struct dt_hostshm *shm, uint64_t comm,
                         const struct dt_u32s *ranks, uint64_t now_ns, struct dt_msg_comm *report)
{
    uint32_t n = shm->local_size, all = shm->size, i = 0;

    *report = (struct dt_msg_comm){ .comm = comm };
    report->ranks.v = dt_xcalloc(n, DT_HOSTSHM_PLACES * sizeof(struct dt_msg_called));
    if (all == 0) {
        for (; i < n; i++)
            add_calls(w, i, ranks->v[i], now_ns, &report->ranks);
    } else if (read_members(shm, &report->members)) {
        for (uint32_t rank = 0; rank < all && i < n; rank++) {
            if (dt_u32s_find(ranks, report->members.v[rank]) >= 0)
                add_calls(w, i++, rank, now_ns, &report->ranks);
        }
    }
}

void dt_callwatch_lower(const struct dt_hostshm *shm, uint32_t *limit_ms)
{
    for (uint32_t i = 0; i < shm->local_size && !dt_hostshm_stopped(shm, NULL); i++) {
        uint32_t ms = atomic_load_explicit(&shm->ranks[i].least_limit_ms, memory_order_relaxed);

        *limit_ms = dt_hostshm_lesser_limit(*limit_ms, ms);
    }
}

void dt_callwatch_free_report(struct dt_msg_list *comms)
{
    struct dt_msg_comm *c = comms->v;

    for (uint32_t i = 0; i < comms->n; i++) {
        free(c[i].members.v);
        free(c[i].ranks.v);
    }
    free(c);
    *comms = (struct dt_msg_list){ 0 };
}

void dt_callwatch_reset(struct dt_callwatch *w)
{
    free(w->seen);
    w->seen = NULL;
}
