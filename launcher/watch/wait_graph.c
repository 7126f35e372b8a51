#include "launcher/watch/wait_graph.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "runtime/wire/hostshm.h"

/* ---- recording ---- */

static void add_group(struct dt_wait_graph *w, uint64_t comm, uint32_t n, const uint32_t *members)
{
    struct dt_waitgroup *g;

    w->groups = dt_xrealloc(w->groups, w->n + 1, sizeof *w->groups);
    g = &w->groups[w->n++];
    *g = (struct dt_waitgroup){ .comm = comm, .n = n, .nwaits = n * DT_HOSTSHM_PLACES };
    g->waits = dt_xcalloc(g->nwaits, sizeof *g->waits);
    if (!members)
        return;
    g->members = dt_xcalloc(n, sizeof *g->members);
    memcpy(g->members, members, n * sizeof *members);
}

static void drop_group(struct dt_wait_graph *w, uint32_t i)
{
    free(w->groups[i].members);
    free(w->groups[i].waits);
    w->groups[i] = w->groups[--w->n];
}

void dt_wait_graph_init(struct dt_wait_graph *w, uint32_t np, uint32_t nhosts)
{
    *w = (struct dt_wait_graph){ .np = np, .nhosts = nhosts };
    w->ranks = dt_xcalloc(np, sizeof *w->ranks);
    w->limits = dt_xcalloc(nhosts, sizeof *w->limits);
    add_group(w, 0, np, NULL);
}

void dt_wait_graph_free(struct dt_wait_graph *w)
{
    while (w->n)
        drop_group(w, w->n - 1);
    free(w->groups);
    free(w->ranks);
    free(w->limits);
}

void dt_wait_graph_forget(struct dt_wait_graph *w, uint32_t generation, uint64_t now_ns)
{
    uint32_t np = w->np, nhosts = w->nhosts;

    dt_wait_graph_free(w);
    dt_wait_graph_init(w, np, nhosts);
    w->generation = generation;
    w->since_ns = now_ns;
}

bool dt_wait_graph_is_current(const struct dt_wait_graph *w, uint32_t generation, uint64_t ping_ns)
{
    return generation == w->generation && ping_ns >= w->since_ns;
}

uint32_t dt_wait_graph_least_limit(const struct dt_wait_graph *w)
{
    uint32_t least = 0;

    for (uint32_t i = 0; i < w->nhosts; i++)
        least = dt_hostshm_lesser_limit(least, w->limits[i]);
    return least;
}

static bool all_in_job(const struct dt_wait_graph *w, const struct dt_u32s *members)
{
    for (uint32_t i = 0; i < members->n; i++) {
        if (members->v[i] >= w->np)
            return false;
    }
    return members->n > 0;
}

/* Returns NULL if there is no such group and its members are unknown. */
static struct dt_waitgroup *group_of(struct dt_wait_graph *w, const struct dt_msg_comm *comm)
{
    for (uint32_t i = 0; i < w->n; i++) {
        if (w->groups[i].comm == comm->comm)
            return &w->groups[i];
    }
    if (!all_in_job(w, &comm->members))
        return NULL;
    add_group(w, comm->comm, comm->members.n, comm->members.v);
    return &w->groups[w->n - 1];
}

void dt_wait_graph_note(struct dt_wait_graph *w, const struct dt_msg_comm *comm,
                        const struct dt_u32s *here, uint64_t now_ns)
{
    const struct dt_msg_called *told = comm->ranks.v;
    struct dt_waitgroup *g = group_of(w, comm);

    if (!g)
        return;
    /* A rank without a report has not reached any call. */
    for (uint32_t i = 0; i < g->nwaits; i++) {
        if (dt_u32s_find(here, dt_waitgroup_rank(g, i)) >= 0)
            g->waits[i] = (struct dt_wait){ .seen_ns = now_ns };
    }
    for (uint32_t i = 0; i < comm->ranks.n; i++) {
        if (told[i].rank < g->n && told[i].place < DT_HOSTSHM_PLACES)
            g->waits[told[i].place * g->n + told[i].rank] = (struct dt_wait){
                .call = told[i].place ? 0 : told[i].call,
                .signature = told[i].signature,
                .pair = told[i].place ? told[i].call : 0,
                .limit_ms = told[i].limit_ms,
                .since_ns = now_ns - told[i].waited_ms * 1000000ull,
                .seen_ns = now_ns,
            };
    }
}

/* ---- one rank ---- */

uint64_t dt_wait_inside(const struct dt_wait *wait)
{
    if (wait->pair & DT_HOSTSHM_INSIDE)
        return wait->pair;
    return wait->call & DT_HOSTSHM_INSIDE ? wait->call : 0;
}

bool dt_wait_is_alone(const struct dt_wait *wait)
{
    return (dt_wait_inside(wait) & (DT_HOSTSHM_INSIDE - 1)) == DT_CALL_GPU_COPY;
}

static const struct dt_waiter *waiter(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                                      uint32_t member)
{
    return &w->ranks[dt_waitgroup_rank(g, member)];
}

static bool inside(const struct dt_wait_graph *w, const struct dt_waitgroup *g, uint32_t member)
{
    return !waiter(w, g, member)->ended && dt_wait_inside(&g->waits[member]);
}

static bool waits(const struct dt_wait_graph *w, const struct dt_waitgroup *g, uint32_t member)
{
    return inside(w, g, member) && !waiter(w, g, member)->stopped;
}

uint32_t dt_wait_limit(const struct dt_wait *wait, uint32_t limit_ms)
{
    if (wait->limit_ms == DT_HOSTSHM_NO_LIMIT)
        return 0;
    return wait->limit_ms ? wait->limit_ms : limit_ms;
}

static uint64_t due_ns(const struct dt_wait *wait, uint32_t limit_ms)
{
    uint32_t limit = dt_wait_limit(wait, limit_ms);

    return limit ? wait->since_ns + limit * 1000000ull : UINT64_MAX;
}

static bool is_due_before(const struct dt_wait *a, const struct dt_wait *b, uint32_t limit_ms)
{
    uint64_t due_a = due_ns(a, limit_ms), due_b = due_ns(b, limit_ms);

    return due_a != due_b ? due_a < due_b : a->since_ns < b->since_ns;
}

int dt_wait_graph_first_due(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                            uint32_t limit_ms)
{
    int first = -1;

    for (uint32_t i = 0; i < g->nwaits; i++) {
        if (waits(w, g, i) &&
            (first < 0 || is_due_before(&g->waits[i], &g->waits[first], limit_ms)))
            first = (int)i;
    }
    return first;
}

uint64_t dt_wait_graph_ms(const struct dt_wait_graph *w, const struct dt_waitgroup *g, uint32_t who)
{
    uint64_t known_ns = g->waits[who].seen_ns, since_ns = g->waits[who].since_ns;

    for (uint32_t i = 0; i < g->n; i++) {
        if (!waiter(w, g, i)->ended && g->waits[i].seen_ns < known_ns)
            known_ns = g->waits[i].seen_ns;
    }
    return known_ns > since_ns ? (known_ns - since_ns) / 1000000 : 0;
}

void dt_wait_graph_tidy(struct dt_wait_graph *w)
{
    for (uint32_t i = w->n; i-- > 1;) {
        uint32_t member = 0;

        while (member < w->groups[i].nwaits && !inside(w, &w->groups[i], member))
            member++;
        if (member == w->groups[i].nwaits)
            drop_group(w, i);
    }
}

struct aged {
    uint64_t comm;
    uint64_t since_ns;
};

static int by_age(const void *a, const void *b)
{
    const struct aged *x = a, *y = b;

    return x->since_ns < y->since_ns ? -1 : x->since_ns > y->since_ns;
}

void dt_wait_graph_list_oldest(const struct dt_wait_graph *w, uint32_t most,
                               struct dt_msg_list *asked)
{
    struct aged *aged = dt_xcalloc(w->n, sizeof *aged);
    uint32_t n = w->n - 1 < most ? w->n - 1 : most;
    struct dt_msg_asked *v = dt_xcalloc(n, sizeof *v);

    for (uint32_t k = 1; k < w->n; k++) {
        const struct dt_waitgroup *g = &w->groups[k];

        aged[k - 1] = (struct aged){ g->comm, UINT64_MAX };
        for (uint32_t i = 0; i < g->nwaits; i++) {
            if (inside(w, g, i) && g->waits[i].since_ns < aged[k - 1].since_ns)
                aged[k - 1].since_ns = g->waits[i].since_ns;
        }
    }
    qsort(aged, w->n - 1, sizeof *aged, by_age);
    for (uint32_t i = 0; i < n; i++)
        v[i].comm = aged[i].comm;
    free(aged);
    *asked = (struct dt_msg_list){ v, n };
}

/* ---- all ranks of a group ---- */

static bool in_collective(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                          uint32_t member)
{
    return member < g->n && inside(w, g, member) && !dt_wait_is_alone(&g->waits[member]);
}

static bool is_behind(const struct dt_wait *a, const struct dt_wait *b)
{
    return dt_hostshm_call_number(a->call) < dt_hostshm_call_number(b->call);
}

static bool has_not_come(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                         uint32_t member, uint32_t who)
{
    return !waiter(w, g, member)->ended && !in_collective(w, g, member) &&
           is_behind(&g->waits[member], &g->waits[who]);
}

static bool holds_up(const struct dt_wait_graph *w, const struct dt_waitgroup *g, uint32_t member,
                     uint32_t who)
{
    return in_collective(w, g, member) && waiter(w, g, member)->stopped &&
           !is_behind(&g->waits[who], &g->waits[member]);
}

static bool fit(const struct dt_waitgroup *g, uint32_t a, uint32_t b)
{
    uint64_t one = g->waits[a].pair, other = g->waits[b].pair;
    uint32_t number = dt_hostshm_pair_number(one), others = dt_hostshm_pair_number(other);
    unsigned kinds = (one ^ other) & (DT_HOSTSHM_INSIDE - 1);

    return kinds == (DT_CALL_SEND ^ DT_CALL_RECV) && dt_hostshm_pair_peer(one) == b % g->n &&
           dt_hostshm_pair_peer(other) == a % g->n &&
           (number == others || number == 0 || others == 0);
}

/* Returns whether the member is in the matching call of the pair, or, unless is_inside, was in it
 * last. */
static bool has_come(const struct dt_waitgroup *g, uint32_t member, uint32_t who, bool is_inside)
{
    uint32_t at = member + g->n;

    while (at < g->nwaits && !(fit(g, who, at) && (!is_inside || dt_wait_inside(&g->waits[at]))))
        at += g->n;
    return at < g->nwaits;
}

static bool keeps_from_pair(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                            uint32_t member, uint32_t who)
{
    return dt_hostshm_pair_peer(g->waits[who].pair) == member && !waiter(w, g, member)->ended &&
           (waiter(w, g, member)->stopped || !has_come(g, member, who, false));
}

static uint32_t list_where(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                           uint32_t who,
                           bool (*holds)(const struct dt_wait_graph *, const struct dt_waitgroup *,
                                         uint32_t, uint32_t),
                           struct dt_u32s *list)
{
    bool *in = dt_xcalloc(w->np, sizeof *in);

    *list = (struct dt_u32s){ dt_xcalloc(g->n, sizeof *list->v), 0 };
    for (uint32_t i = 0; i < g->n; i++)
        in[dt_waitgroup_rank(g, i)] = holds(w, g, i, who);
    for (uint32_t rank = 0; rank < w->np; rank++) {
        if (in[rank])
            list->v[list->n++] = rank;
    }
    free(in);
    return list->n;
}

void dt_wait_graph_for_whom(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                            uint32_t who, struct dt_u32s *list)
{
    if (dt_wait_is_alone(&g->waits[who])) {
        *list = (struct dt_u32s){ 0 };
    } else if (g->waits[who].pair & DT_HOSTSHM_INSIDE) {
        list_where(w, g, who, keeps_from_pair, list);
    } else if (list_where(w, g, who, has_not_come, list) == 0) {
        free(list->v);
        list_where(w, g, who, holds_up, list);
    }
}

/* Returns whether both are in the collective with the same number. */
static bool in_the_same(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                        uint32_t member, uint32_t who)
{
    return in_collective(w, g, member) && in_collective(w, g, who) &&
           dt_hostshm_call_number(g->waits[member].call) ==
               dt_hostshm_call_number(g->waits[who].call);
}

static bool is_with(const struct dt_wait_graph *w, const struct dt_waitgroup *g, uint32_t member,
                    uint32_t who)
{
    if (g->waits[who].pair & DT_HOSTSHM_INSIDE)
        return member == who % g->n ||
               (!waiter(w, g, member)->stopped && !waiter(w, g, member)->ended &&
                has_come(g, member, who, true));
    return waits(w, g, member) && (member == who || in_the_same(w, g, member, who));
}

void dt_wait_graph_with(const struct dt_wait_graph *w, const struct dt_waitgroup *g, uint32_t who,
                        struct dt_u32s *list)
{
    list_where(w, g, who, is_with, list);
}

static bool is_alike(const struct dt_wait_graph *w, const struct dt_waitgroup *g, uint32_t member,
                     uint32_t who)
{
    return in_the_same(w, g, member, who) && g->waits[member].signature == g->waits[who].signature;
}

static bool is_unlike(const struct dt_wait_graph *w, const struct dt_waitgroup *g, uint32_t member,
                      uint32_t who)
{
    return in_the_same(w, g, member, who) && g->waits[member].signature &&
           g->waits[who].signature && !is_alike(w, g, member, who);
}

void dt_wait_graph_alike(const struct dt_wait_graph *w, const struct dt_waitgroup *g, uint32_t who,
                         struct dt_u32s *list)
{
    list_where(w, g, who, is_alike, list);
}

void dt_wait_graph_unlike(const struct dt_wait_graph *w, const struct dt_waitgroup *g, uint32_t who,
                          struct dt_u32s *list)
{
    list_where(w, g, who, is_unlike, list);
}

/* ---- chains of waits ---- */

const struct dt_waitgroup *dt_wait_graph_doing(const struct dt_wait_graph *w, uint32_t rank,
                                               uint32_t *member)
{
    const struct dt_waitgroup *longest = NULL;

    for (uint32_t k = 0; k < w->n; k++) {
        const struct dt_waitgroup *g = &w->groups[k];

        for (uint32_t i = 0; i < g->nwaits; i++) {
            if (dt_waitgroup_rank(g, i) != rank || !waits(w, g, i) ||
                (longest && longest->waits[*member].since_ns <= g->waits[i].since_ns))
                continue;
            longest = g;
            *member = i;
        }
    }
    return longest;
}

enum color { FRESH, OPEN, DONE };

struct walk {
    const struct dt_wait_graph *w;
    uint8_t *colors; /* by rank */
    struct dt_u32s *ends;
    bool deadlock;
};

static void visit(struct walk *walk, uint32_t rank, const struct dt_waitgroup *g, uint32_t member)
{
    struct dt_u32s whom = { 0 };

    walk->colors[rank] = OPEN;
    if (g)
        dt_wait_graph_for_whom(walk->w, g, member, &whom);
    if (whom.n == 0)
        walk->ends->v[walk->ends->n++] = rank;
    for (uint32_t i = 0; i < whom.n; i++) {
        uint32_t next = whom.v[i], there = 0;

        walk->deadlock |= walk->colors[next] == OPEN;
        if (walk->colors[next] != FRESH)
            continue;
        g = dt_wait_graph_doing(walk->w, next, &there);
        visit(walk, next, g, there);
    }
    free(whom.v);
    walk->colors[rank] = DONE;
}

bool dt_wait_graph_in_the_end(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                              uint32_t who, struct dt_u32s *list)
{
    struct walk walk = { .w = w, .colors = dt_xcalloc(w->np, 1), .ends = list };

    *list = (struct dt_u32s){ dt_xcalloc(w->np, sizeof *list->v), 0 };
    visit(&walk, dt_waitgroup_rank(g, who), g, who);
    free(walk.colors);
    return walk.deadlock;
}
