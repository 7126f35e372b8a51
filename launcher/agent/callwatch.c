#include "launcher/agent/callwatch.h"

#include <stdlib.h>

#include "launcher/base/mem.h"

struct dt_callseen {
    uint64_t call;
    uint64_t signature; /* 0: not known */
    uint64_t pair;
    uint64_t since_ns;
};

static struct dt_callseen see(const struct dt_hostshm_rank *r, uint64_t now_ns)
{
    uint64_t before = atomic_load(&r->call), signature = atomic_load(&r->signature);
    uint64_t call = atomic_load(&r->call);

    return (struct dt_callseen){
        .call = call,
        .signature = call == before && (call & DT_HOSTSHM_INSIDE) ? signature : 0,
        .pair = atomic_load(&r->pair),
        .since_ns = now_ns,
    };
}

bool dt_callwatch_look(struct dt_callwatch *w, const struct dt_hostshm *shm, uint64_t now_ns)
{
    bool first = !w->seen;
    bool waits = false;

    if (first)
        w->seen = dt_xcalloc(shm->head->local_size, sizeof *w->seen);
    for (uint32_t i = 0; i < shm->head->local_size; i++) {
        struct dt_callseen now = see(&shm->ranks[i], now_ns), *before = &w->seen[i];

        if (first || now.call != before->call || now.pair != before->pair)
            *before = now;
        else
            waits |= ((now.call | now.pair) & DT_HOSTSHM_INSIDE) != 0;
    }
    return waits;
}

/* False: some rank of this host has not written it yet. */
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

static void add(struct dt_msg_list *list, uint32_t rank, const struct dt_hostshm_rank *r,
                const struct dt_callseen *seen, uint64_t now_ns)
{
    ((struct dt_msg_called *)list->v)[list->n++] = (struct dt_msg_called){
        .rank = rank,
        .call = seen->call,
        .signature = seen->signature,
        .pair = seen->pair,
        .limit_ms = atomic_load_explicit(&r->limit_ms, memory_order_relaxed),
        .waited_ms = (uint32_t)((now_ns - seen->since_ns) / 1000000),
    };
}

void dt_callwatch_tell(const struct dt_callwatch *w, const struct dt_hostshm *shm, uint64_t comm,
                       const struct dt_u32s *ranks, uint64_t now_ns, struct dt_msg_comm *told)
{
    uint32_t n = shm->head->local_size;
    uint32_t all = shm->size;

    *told = (struct dt_msg_comm){ .comm = comm };
    told->ranks.v = dt_xcalloc(n, sizeof(struct dt_msg_called));
    if (all == 0) {
        for (uint32_t i = 0; i < n; i++)
            add(&told->ranks, ranks->v[i], &shm->ranks[i], &w->seen[i], now_ns);
    } else if (read_members(shm, &told->members)) {
        for (uint32_t rank = 0; rank < all && told->ranks.n < n; rank++) {
            uint32_t i = told->ranks.n;

            if (dt_u32s_find(ranks, told->members.v[rank]) >= 0)
                add(&told->ranks, rank, &shm->ranks[i], &w->seen[i], now_ns);
        }
    }
}

void dt_callwatch_free_told(struct dt_msg_list *comms)
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
