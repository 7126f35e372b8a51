#include "launcher/watch/wait_graph.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "runtime/wire/hostshm.h"

/* ---- recording ---- */

static int by_rank(const void *a, const void *b)
{
    const struct dt_waitmember *x = a, *y = b;

    return (x->rank > y->rank) - (x->rank < y->rank);
}

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
    g->by_rank = dt_xcalloc(n, sizeof *g->by_rank);
    for (uint32_t i = 0; i < n; i++)
        g->by_rank[i] = (struct dt_waitmember){ members[i], i };
    qsort(g->by_rank, n, sizeof *g->by_rank, by_rank);
}

static void drop_group(struct dt_wait_graph *w, uint32_t i)
{
    free(w->groups[i].members);
    free(w->groups[i].by_rank);
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

int64_t dt_waitgroup_member(const struct dt_waitgroup *g, uint32_t rank)
{
    const struct dt_waitmember key = { .rank = rank }, *found;

    if (!g->members)
        return rank < g->n ? (int64_t)rank : -1;
    found = bsearch(&key, g->by_rank, g->n, sizeof key, by_rank);
    return found ? (int64_t)found->member : -1;
}

void dt_wait_graph_note(struct dt_wait_graph *w, const struct dt_msg_comm *comm,
                        const struct dt_u32s *here, uint64_t now_ns)
{
    const struct dt_msg_called *reports = comm->ranks.v;
    struct dt_waitgroup *g = group_of(w, comm);

    if (!g)
        return;
    /* A rank without a report has not reached any call. */
    for (uint32_t i = 0; i < here->n; i++) {
        int64_t member = dt_waitgroup_member(g, here->v[i]);

        for (int64_t slot = member; member >= 0 && slot < g->nwaits; slot += g->n)
            g->waits[slot] = (struct dt_wait){ .seen_ns = now_ns };
    }
    for (uint32_t i = 0; i < comm->ranks.n; i++) {
        if (reports[i].rank < g->n && reports[i].place < DT_HOSTSHM_PLACES)
            g->waits[reports[i].place * g->n + reports[i].rank] = (struct dt_wait){
                .call = reports[i].place ? 0 : reports[i].call,
                .signature = reports[i].signature,
                .pair = reports[i].place ? reports[i].call : 0,
                .limit_ms = reports[i].limit_ms,
                .since_ns = now_ns - reports[i].waited_ms * 1000000ull,
                .seen_ns = now_ns,
            };
    }
}

/* ---- one rank ---- */

static bool is_inside_pair(const struct dt_wait *wait)
{
    return wait->pair & DT_HOSTSHM_INSIDE;
}

uint64_t dt_wait_call(const struct dt_wait *wait)
{
    if (is_inside_pair(wait))
        return wait->pair;
    return wait->call & DT_HOSTSHM_INSIDE ? wait->call : 0;
}

static bool is_inside(const struct dt_wait *wait, enum dt_call_kind kind)
{
    return (dt_wait_call(wait) & (DT_HOSTSHM_INSIDE - 1)) == kind;
}

bool dt_wait_is_for_gpu(const struct dt_wait *wait)
{
    return is_inside(wait, DT_CALL_GPU_COPY) || dt_wait_is_for_launch(wait);
}

bool dt_wait_is_for_launch(const struct dt_wait *wait)
{
    return is_inside(wait, DT_CALL_GPU_LAUNCH);
}

static const struct dt_waiter *waiter_of(const struct dt_wait_graph *w,
                                         const struct dt_waitgroup *g, uint32_t slot)
{
    return &w->ranks[dt_waitgroup_rank(g, slot)];
}

static bool is_in_call(const struct dt_wait_graph *w, const struct dt_waitgroup *g, uint32_t slot)
{
    return !waiter_of(w, g, slot)->ended && dt_wait_call(&g->waits[slot]);
}

static bool is_waiting(const struct dt_wait_graph *w, const struct dt_waitgroup *g, uint32_t slot)
{
    return is_in_call(w, g, slot) && !waiter_of(w, g, slot)->stopped;
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
        if (is_waiting(w, g, i) &&
            (first < 0 || is_due_before(&g->waits[i], &g->waits[first], limit_ms)))
            first = (int)i;
    }
    return first;
}

uint64_t dt_wait_graph_waited_ms(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                                 uint32_t slot)
{
    uint64_t known_ns = g->waits[slot].seen_ns, since_ns = g->waits[slot].since_ns;

    for (uint32_t i = 0; i < g->n; i++) {
        if (!waiter_of(w, g, i)->ended && g->waits[i].seen_ns < known_ns)
            known_ns = g->waits[i].seen_ns;
    }
    return known_ns > since_ns ? (known_ns - since_ns) / 1000000 : 0;
}

void dt_wait_graph_tidy(struct dt_wait_graph *w)
{
    for (uint32_t i = w->n; i-- > 1;) {
        uint32_t slot = 0;

        while (slot < w->groups[i].nwaits && !is_in_call(w, &w->groups[i], slot))
            slot++;
        if (slot == w->groups[i].nwaits)
            drop_group(w, i);
    }
}

struct comm_age {
    uint64_t comm;
    uint64_t since_ns;
};

static int by_age(const void *a, const void *b)
{
    const struct comm_age *x = a, *y = b;

    return x->since_ns < y->since_ns ? -1 : x->since_ns > y->since_ns;
}

void dt_wait_graph_list_oldest(const struct dt_wait_graph *w, uint32_t max,
                               struct dt_msg_list *asked)
{
    struct comm_age *ages = dt_xcalloc(w->n, sizeof *ages);
    uint32_t n = w->n - 1 < max ? w->n - 1 : max;
    struct dt_msg_asked *v = dt_xcalloc(n, sizeof *v);

    for (uint32_t k = 1; k < w->n; k++) {
        const struct dt_waitgroup *g = &w->groups[k];

        ages[k - 1] = (struct comm_age){ g->comm, UINT64_MAX };
        for (uint32_t i = 0; i < g->nwaits; i++) {
            if (is_in_call(w, g, i) && g->waits[i].since_ns < ages[k - 1].since_ns)
                ages[k - 1].since_ns = g->waits[i].since_ns;
        }
    }
    qsort(ages, w->n - 1, sizeof *ages, by_age);
    for (uint32_t i = 0; i < n; i++)
        v[i].comm = ages[i].comm;
    free(ages);
    *asked = (struct dt_msg_list){ v, n };
}

/* ---- all ranks of a group ---- */

/* NCCL's start is not counted: ranks may have left it, and wait in the next call, while another
 * rank is still starting NCCL. */
static bool is_in_collective(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                             uint32_t member)
{
    const struct dt_wait *wait = &g->waits[member];

    return member < g->n && is_in_call(w, g, member) && !dt_wait_is_for_gpu(wait) &&
           !is_inside(wait, DT_CALL_GPU_START);
}

static bool is_behind(const struct dt_wait *a, const struct dt_wait *b)
{
    return dt_hostshm_call_number(a->call) < dt_hostshm_call_number(b->call);
}

static bool is_missing(const struct dt_wait_graph *w, const struct dt_waitgroup *g, uint32_t member,
                       uint32_t slot)
{
    return !waiter_of(w, g, member)->ended && !is_in_collective(w, g, member) &&
           is_behind(&g->waits[member], &g->waits[slot]);
}

static bool is_stopped_in_call(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                               uint32_t member, uint32_t slot)
{
    return is_in_collective(w, g, member) && waiter_of(w, g, member)->stopped &&
           !is_behind(&g->waits[slot], &g->waits[member]);
}

static bool is_matching_pair(const struct dt_waitgroup *g, uint32_t a, uint32_t b)
{
    uint64_t one = g->waits[a].pair, other = g->waits[b].pair;
    uint32_t one_number = dt_hostshm_pair_number(one);
    uint32_t other_number = dt_hostshm_pair_number(other);
    unsigned kinds = (one ^ other) & (DT_HOSTSHM_INSIDE - 1);

    return kinds == (DT_CALL_SEND ^ DT_CALL_RECV) && dt_hostshm_pair_peer(one) == b % g->n &&
           dt_hostshm_pair_peer(other) == a % g->n &&
           (one_number == other_number || one_number == 0 || other_number == 0);
}

/* Returns whether the member has made a call that matches the slot's call. With must_be_inside, a
 * call that it has left does not count. */
static bool has_reached_pair(const struct dt_waitgroup *g, uint32_t member, uint32_t slot,
                             bool must_be_inside)
{
    for (uint32_t i = member + g->n; i < g->nwaits; i += g->n) {
        if (is_matching_pair(g, slot, i) && (!must_be_inside || dt_wait_call(&g->waits[i])))
            return true;
    }
    return false;
}

/* The member is the one that the slot sends to or receives from. */
static bool delays_pair(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                        uint32_t member, uint32_t slot)
{
    return !waiter_of(w, g, member)->ended &&
           (waiter_of(w, g, member)->stopped || !has_reached_pair(g, member, slot, false));
}

/* Whether something holds for the member and the slot. */
typedef bool relation(const struct dt_wait_graph *w, const struct dt_waitgroup *g, uint32_t member,
                      uint32_t slot);

/* The members from `at` up to, but not including, `end` for which the relation holds. */
struct filter {
    relation *holds;
    uint32_t at;
    uint32_t end;
};

/* Sets *rank to the next rank that passes the filter. Returns false if no rank is left. */
static bool next_rank(const struct dt_wait_graph *w, const struct dt_waitgroup *g, uint32_t slot,
                      struct filter *f, uint32_t *rank)
{
    while (f->at < f->end) {
        uint32_t member = f->at++;

        if (f->holds(w, g, member, slot)) {
            *rank = dt_waitgroup_rank(g, member);
            return true;
        }
    }
    return false;
}

static void list_ranks(const struct dt_wait_graph *w, const struct dt_waitgroup *g, uint32_t slot,
                       struct filter f, struct dt_u32s *list)
{
    bool *in = dt_xcalloc(w->np, sizeof *in);
    uint32_t rank;

    *list = (struct dt_u32s){ dt_xcalloc(f.end - f.at, sizeof *list->v), 0 };
    while (next_rank(w, g, slot, &f, &rank))
        in[rank] = true;
    for (rank = 0; rank < w->np; rank++) {
        if (in[rank])
            list->v[list->n++] = rank;
    }
    free(in);
}

static void list_where(const struct dt_wait_graph *w, const struct dt_waitgroup *g, uint32_t slot,
                       relation *holds, struct dt_u32s *list)
{
    list_ranks(w, g, slot, (struct filter){ holds, 0, g->n }, list);
}

/* Returns the members that a slot waits for. */
static struct filter awaited_by(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                                uint32_t slot)
{
    const struct dt_wait *wait = &g->waits[slot];
    uint32_t peer = dt_hostshm_pair_peer(wait->pair), member = 0;

    if (dt_wait_is_for_gpu(wait))
        return (struct filter){ 0 };
    if (is_inside_pair(wait))
        return (struct filter){ delays_pair, peer, peer < g->n ? peer + 1 : peer };
    while (member < g->n && !is_missing(w, g, member, slot))
        member++;
    return (struct filter){ member < g->n ? is_missing : is_stopped_in_call, 0, g->n };
}

void dt_wait_graph_awaited(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                           uint32_t slot, struct dt_u32s *list)
{
    list_ranks(w, g, slot, awaited_by(w, g, slot), list);
}

static bool has_number_of(const struct dt_waitgroup *g, uint32_t member, uint32_t slot)
{
    return dt_hostshm_call_number(g->waits[member].call) ==
           dt_hostshm_call_number(g->waits[slot].call);
}

/* Returns whether both are in the collective with the same number. */
static bool is_in_same_collective(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                                  uint32_t member, uint32_t slot)
{
    return is_in_collective(w, g, member) && is_in_collective(w, g, slot) &&
           has_number_of(g, member, slot);
}

/* In its start, and in a communicator's first launch, NCCL waits for all ranks. */
static bool are_together_in_nccl(const struct dt_waitgroup *g, uint32_t member, uint32_t slot)
{
    const struct dt_wait *a = &g->waits[member], *b = &g->waits[slot];
    bool launch = dt_wait_is_for_launch(a) && dt_wait_is_for_launch(b);
    bool start = is_inside(a, DT_CALL_GPU_START) && is_inside(b, DT_CALL_GPU_START);

    return (launch || start) && has_number_of(g, member, slot);
}

static bool is_in_same_call(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                            uint32_t member, uint32_t slot)
{
    if (is_inside_pair(&g->waits[slot]))
        return member == slot % g->n ||
               (!waiter_of(w, g, member)->stopped && !waiter_of(w, g, member)->ended &&
                has_reached_pair(g, member, slot, true));
    return is_waiting(w, g, member) &&
           (member == slot || is_in_same_collective(w, g, member, slot) ||
            are_together_in_nccl(g, member, slot));
}

void dt_wait_graph_in_same_call(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                                uint32_t slot, struct dt_u32s *list)
{
    list_where(w, g, slot, is_in_same_call, list);
}

static bool is_matching(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                        uint32_t member, uint32_t slot)
{
    return is_in_same_collective(w, g, member, slot) &&
           g->waits[member].signature == g->waits[slot].signature;
}

static bool is_mismatching(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                           uint32_t member, uint32_t slot)
{
    return is_in_same_collective(w, g, member, slot) && g->waits[member].signature &&
           g->waits[slot].signature && !is_matching(w, g, member, slot);
}

void dt_wait_graph_matching(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                            uint32_t slot, struct dt_u32s *list)
{
    list_where(w, g, slot, is_matching, list);
}

void dt_wait_graph_mismatching(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                               uint32_t slot, struct dt_u32s *list)
{
    list_where(w, g, slot, is_mismatching, list);
}

/* ---- chains of waits ---- */

/* Updates *longest and *slot if that rank of the job has waited longer in g. */
static void find_longer_wait(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                             uint32_t rank, const struct dt_waitgroup **longest, uint32_t *slot)
{
    int64_t member = dt_waitgroup_member(g, rank);

    for (int64_t i = member; member >= 0 && i < g->nwaits; i += g->n) {
        if (!is_waiting(w, g, (uint32_t)i) ||
            (*longest && (*longest)->waits[*slot].since_ns <= g->waits[i].since_ns))
            continue;
        *longest = g;
        *slot = (uint32_t)i;
    }
}

const struct dt_waitgroup *dt_wait_graph_delaying_wait(const struct dt_wait_graph *w,
                                                       const struct dt_waitgroup *g, uint32_t rank,
                                                       uint32_t *slot)
{
    const struct dt_waitgroup *longest = NULL;

    if (dt_hostshm_is_of_saves(g->comm))
        return NULL;
    for (uint32_t k = 0; k < w->n; k++) {
        if (!dt_hostshm_is_of_saves(w->groups[k].comm))
            find_longer_wait(w, &w->groups[k], rank, &longest, slot);
    }
    return longest;
}

/* The state of a rank in a depth-first search. A wait for a rank that is OPEN closes a cycle. */
enum color { FRESH, OPEN, DONE };

/* All ranks inside a collective wait for the same ranks, so the search follows the waits of only
 * the first one that it meets. */
struct collective {
    const struct dt_waitgroup *g;
    uint32_t slot; /* of that first rank */
    enum color color;
    bool awaits; /* its ranks wait for some rank */
};

struct step {
    uint32_t rank;
    const struct dt_waitgroup *g; /* the group in which it waits; NULL: it does not wait */
    uint32_t slot;                /* its slot there */
    struct filter awaited;        /* the ranks it waits for that have not been looked at */
    bool awaits;                  /* it waits for some rank */
    int64_t collective; /* index of the collective whose waits this step follows; -1: none */
};

struct walk {
    const struct dt_wait_graph *w;
    uint8_t *colors;   /* by rank */
    struct step *path; /* the last step is the rank that is visited */
    uint32_t depth;
    struct collective *collectives;
    uint32_t ncollectives;
    struct dt_u32s *ends;
    bool deadlock;
};

static const struct collective *find_collective(const struct walk *walk,
                                                const struct dt_waitgroup *g, uint32_t slot)
{
    for (uint32_t i = 0; i < walk->ncollectives; i++) {
        if (walk->collectives[i].g == g && has_number_of(g, walk->collectives[i].slot, slot))
            return &walk->collectives[i];
    }
    return NULL;
}

static void enter_collective(struct walk *walk, struct step *s)
{
    const struct collective *known = find_collective(walk, s->g, s->slot);

    if (known) {
        walk->deadlock |= known->color == OPEN;
        s->awaits = known->awaits;
        return;
    }
    s->awaited = awaited_by(walk->w, s->g, s->slot);
    s->collective = walk->ncollectives++;
    walk->collectives =
        dt_xrealloc(walk->collectives, walk->ncollectives, sizeof *walk->collectives);
    walk->collectives[s->collective] = (struct collective){ s->g, s->slot, OPEN, false };
}

static void enter(struct walk *walk, uint32_t rank, const struct dt_waitgroup *g, uint32_t slot)
{
    struct step *s = &walk->path[walk->depth++];

    *s = (struct step){ .rank = rank, .g = g, .slot = slot, .collective = -1 };
    walk->colors[rank] = OPEN;
    if (g && (is_inside_pair(&g->waits[slot]) || dt_wait_is_for_gpu(&g->waits[slot])))
        s->awaited = awaited_by(walk->w, g, slot);
    else if (g)
        enter_collective(walk, s);
}

static void leave(struct walk *walk)
{
    const struct step *s = &walk->path[--walk->depth];

    if (!s->awaits)
        walk->ends->v[walk->ends->n++] = s->rank;
    if (s->collective >= 0)
        walk->collectives[s->collective].color = DONE;
    walk->colors[s->rank] = DONE;
}

/* Looks at the next rank for which the last one of the path waits. */
static void advance(struct walk *walk)
{
    struct step *s = &walk->path[walk->depth - 1];
    const struct dt_waitgroup *g;
    uint32_t rank, slot = 0;

    if (!next_rank(walk->w, s->g, s->slot, &s->awaited, &rank)) {
        leave(walk);
        return;
    }
    s->awaits = true;
    if (s->collective >= 0)
        walk->collectives[s->collective].awaits = true;
    walk->deadlock |= walk->colors[rank] == OPEN;
    if (walk->colors[rank] == FRESH) {
        g = dt_wait_graph_delaying_wait(walk->w, s->g, rank, &slot);
        enter(walk, rank, g, slot);
    }
}

bool dt_wait_graph_chain_ends(const struct dt_wait_graph *w, const struct dt_waitgroup *g,
                              uint32_t slot, struct dt_u32s *list)
{
    struct walk walk = {
        .w = w,
        .colors = dt_xcalloc(w->np, sizeof *walk.colors),
        .path = dt_xcalloc(w->np, sizeof *walk.path),
        .ends = list,
    };

    *list = (struct dt_u32s){ dt_xcalloc(w->np, sizeof *list->v), 0 };
    enter(&walk, dt_waitgroup_rank(g, slot), g, slot);
    while (walk.depth)
        advance(&walk);
    free(walk.colors);
    free(walk.path);
    free(walk.collectives);
    return walk.deadlock;
}
