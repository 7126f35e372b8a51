#include "launcher/place/plan.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "runtime/wire/msg.h"

/* A heap of hosts ordered by how full they are: the top takes the next rank. */
struct heap {
    const struct dt_hostlist *hosts;
    const int *ranks; /* number of ranks, by host */
    size_t *v;        /* indices of hosts */
    size_t n;
};

/* Returns whether host a takes a rank before host b: fewer ranks per slot first, then the order of
 * the list. */
static bool before(const struct heap *h, size_t a, size_t b)
{
    long long full_a = (long long)h->ranks[a] * h->hosts->v[b].slots;
    long long full_b = (long long)h->ranks[b] * h->hosts->v[a].slots;

    return full_a != full_b ? full_a < full_b : a < b;
}

static void sift_down(struct heap *h, size_t at)
{
    for (;;) {
        size_t best = at;

        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < h->n; child++)
            if (before(h, h->v[child], h->v[best]))
                best = child;
        if (best == at)
            return;
        size_t swap = h->v[at];
        h->v[at] = h->v[best];
        h->v[best] = swap;
        at = best;
    }
}

static bool is_full(const struct dt_host *host, int ranks)
{
    return host->max_slots && ranks >= host->max_slots;
}

/* Places "extra" ranks beyond the slots, all of which are taken. Returns how many found no place.
 */
static int place_extra(const struct dt_hostlist *hosts, int *ranks, int extra)
{
    struct heap h = { hosts, ranks, dt_xcalloc(hosts->n, sizeof(size_t)), 0 };

    for (size_t i = 0; i < hosts->n; i++)
        if (!is_full(&hosts->v[i], ranks[i]))
            h.v[h.n++] = i;
    for (size_t i = h.n; i-- > 0;)
        sift_down(&h, i);
    while (extra && h.n) {
        size_t top = h.v[0];

        ranks[top]++;
        extra--;
        if (is_full(&hosts->v[top], ranks[top]))
            h.v[0] = h.v[--h.n];
        sift_down(&h, 0);
    }
    free(h.v);
    return extra;
}

static int total_slots(const struct dt_hostlist *hosts, int *total, struct dt_error *err)
{
    *total = 0;
    for (size_t i = 0; i < hosts->n; i++) {
        if (hosts->v[i].slots > DT_RANKS_MAX - *total)
            return dt_error_usage(err, "the hosts have more than %d slots", DT_RANKS_MAX);
        *total += hosts->v[i].slots;
    }
    return 0;
}

/* Deals one rank to each host in turn, up to the host's limit, until total ranks are dealt or all
 * limits are reached. turns receives the host of each rank. Returns how many ranks were dealt. */
static int deal(const int *limits, size_t n, int total, uint32_t *turns)
{
    uint32_t *open = dt_xcalloc(n, sizeof *open);
    int dealt = 0;

    for (size_t i = 0; i < n; i++)
        open[i] = (uint32_t)i;
    for (int round = 1; n && dealt < total; round++) {
        size_t kept = 0;

        for (size_t i = 0; i < n && dealt < total; i++) {
            if (limits[open[i]] >= round)
                turns[dealt++] = open[i];
            if (limits[open[i]] > round)
                open[kept++] = open[i];
        }
        n = kept;
    }
    free(open);
    return dealt;
}

/* For --map-by node: one rank on each host in turn, while slots are free. Returns how many ranks
 * found no slot. */
static int deal_slots(const struct dt_hostlist *hosts, int *ranks, int np)
{
    uint32_t *turns = dt_xcalloc((size_t)np, sizeof *turns);
    int *slots = dt_xcalloc(hosts->n, sizeof *slots), dealt;

    for (size_t i = 0; i < hosts->n; i++)
        slots[i] = hosts->v[i].slots;
    dealt = deal(slots, hosts->n, np, turns);
    for (int i = 0; i < dealt; i++)
        ranks[turns[i]]++;
    free(slots);
    free(turns);
    return np - dealt;
}

/* For --map-by slot: fills host after host. Returns how many ranks found no slot. */
static int fill_slots(const struct dt_hostlist *hosts, int *ranks, int left)
{
    for (size_t i = 0; i < hosts->n; i++) {
        ranks[i] = left < hosts->v[i].slots ? left : hosts->v[i].slots;
        left -= ranks[i];
    }
    return left;
}

static void number_by_slot(struct dt_plan *plan)
{
    int rank = 0;

    for (size_t i = 0; i < plan->nnodes; i++)
        for (uint32_t k = 0; k < plan->nodes[i].ranks.n; k++)
            plan->node_of[rank++] = (uint32_t)i;
}

static void number_by_node(struct dt_plan *plan)
{
    int *sizes = dt_xcalloc(plan->nnodes, sizeof *sizes);

    for (size_t i = 0; i < plan->nnodes; i++)
        sizes[i] = (int)plan->nodes[i].ranks.n;
    deal(sizes, plan->nnodes, plan->np, plan->node_of);
    free(sizes);
}

static struct dt_u32s *list_of(const struct dt_plan *plan, int number)
{
    struct dt_plan_node *node = &plan->nodes[plan->node_of[number]];

    return number < plan->np ? &node->ranks : &node->auxiliaries;
}

/* Gives the list room for its n numbers, taken from *storage, and empties it. */
static void make_room(struct dt_u32s *list, uint32_t **storage)
{
    list->v = *storage;
    *storage += list->n;
    list->n = 0;
}

/* Fills each node's lists of numbers: the inverse of node_of. */
static void list_numbers(struct dt_plan *plan)
{
    uint32_t *next = plan->numbers;

    for (size_t i = 0; i < plan->nnodes; i++)
        plan->nodes[i].ranks.n = plan->nodes[i].auxiliaries.n = 0;
    for (int number = 0; number < plan->nprocs; number++)
        list_of(plan, number)->n++;
    for (size_t i = 0; i < plan->nnodes; i++) {
        make_room(&plan->nodes[i].ranks, &next);
        make_room(&plan->nodes[i].auxiliaries, &next);
    }
    for (int number = 0; number < plan->nprocs; number++) {
        struct dt_u32s *list = list_of(plan, number);

        list->v[list->n++] = (uint32_t)number;
    }
}

/* The scheduler runs on the first node. Servers are dealt to the nodes in turn, from the first one
 * on. */
static uint32_t aux_node(const struct dt_plan *plan, int number)
{
    return number == plan->np ? 0 : (uint32_t)((size_t)(number - plan->np - 1) % plan->nnodes);
}

static int count_processes(struct dt_plan *plan, const struct dt_placement *how,
                           struct dt_error *err)
{
    int servers = how->servers == DT_SERVERS_AS_RANKS ? plan->np : how->servers;

    plan->nprocs = plan->np;
    if (!servers)
        return 0;
    if (servers >= DT_RANKS_MAX - plan->np)
        return dt_error_usage(err,
                              "%d ranks, %d servers and a scheduler are more than %d processes",
                              plan->np, servers, DT_RANKS_MAX);
    plan->nprocs += 1 + servers;
    return 0;
}

/* ranks holds the number of ranks of each host; their sum is plan->np. */
static void number_ranks(struct dt_plan *plan, const struct dt_hostlist *hosts, const int *ranks,
                         enum dt_map_by map_by)
{
    plan->nodes = dt_xcalloc(hosts->n, sizeof *plan->nodes);
    plan->node_of = dt_xcalloc((size_t)plan->nprocs, sizeof *plan->node_of);
    plan->numbers = dt_xcalloc((size_t)plan->nprocs, sizeof *plan->numbers);
    for (size_t i = 0; i < hosts->n; i++) {
        if (!ranks[i])
            continue;
        plan->nodes[plan->nnodes] = (struct dt_plan_node){ .host = i,
                                                           .node_rank = (int)plan->nnodes,
                                                           .ranks.n = (uint32_t)ranks[i] };
        plan->nnodes++;
    }
    if (map_by == DT_MAP_BY_NODE)
        number_by_node(plan);
    else
        number_by_slot(plan);
    for (int number = plan->np; number < plan->nprocs; number++)
        plan->node_of[number] = aux_node(plan, number);
    list_numbers(plan);
}

static int place_by_slots(struct dt_plan *plan, const struct dt_hostlist *hosts, int np,
                          const struct dt_placement *how, struct dt_error *err)
{
    int *ranks, left;

    plan->np = np ? np : plan->slots;
    plan->oversubscribed = plan->np > plan->slots;
    if (plan->oversubscribed && how->no_oversubscribe)
        return dt_error_usage(err,
                              "%d ranks do not fit on %d slot%s, and --no-oversubscribe was given",
                              plan->np, plan->slots, plan->slots == 1 ? "" : "s");
    if (count_processes(plan, how, err) < 0)
        return -1;
    ranks = dt_xcalloc(hosts->n, sizeof *ranks);
    left = how->map_by == DT_MAP_BY_NODE ? deal_slots(hosts, ranks, plan->np)
                                         : fill_slots(hosts, ranks, plan->np);
    left = place_extra(hosts, ranks, left);
    if (left == 0)
        number_ranks(plan, hosts, ranks, how->map_by);
    free(ranks);
    if (left)
        return dt_error_usage(err, "%d ranks are too many: with max_slots the hosts take %d",
                              plan->np, plan->np - left);
    return 0;
}

static int check_per_node(const struct dt_hostlist *hosts, int np, int per_node,
                          struct dt_error *err)
{
    if (hosts->n > (size_t)(DT_RANKS_MAX / per_node))
        return dt_error_usage(err, "%d ranks on each of %zu hosts are more than %d", per_node,
                              hosts->n, DT_RANKS_MAX);
    if (np > per_node * (int)hosts->n)
        return dt_error_usage(err, "%d ranks are too many: %d on each of %zu host%s are %d", np,
                              per_node, hosts->n, hosts->n == 1 ? "" : "s",
                              per_node * (int)hosts->n);
    if (np % per_node)
        return dt_error_usage(err, "%d ranks cannot be placed with %d on each host", np, per_node);
    return 0;
}

static int check_host_takes(const struct dt_host *host, int ranks, bool no_oversubscribe,
                            struct dt_error *err)
{
    if (host->max_slots && ranks > host->max_slots)
        return dt_error_usage(err, "%d ranks are too many for %s, whose max_slots is %d", ranks,
                              host->name, host->max_slots);
    if (no_oversubscribe && ranks > host->slots)
        return dt_error_usage(err,
                              "%d ranks do not fit on the %d slot%s of %s, and "
                              "--no-oversubscribe was given",
                              ranks, host->slots, host->slots == 1 ? "" : "s", host->name);
    return 0;
}

static int place_per_node(struct dt_plan *plan, const struct dt_hostlist *hosts, int np,
                          const struct dt_placement *how, struct dt_error *err)
{
    size_t used;
    int *ranks, rc = 0;

    if (check_per_node(hosts, np, how->per_node, err) < 0)
        return -1;
    used = np ? (size_t)(np / how->per_node) : hosts->n;
    plan->np = (int)used * how->per_node;
    if (count_processes(plan, how, err) < 0)
        return -1;
    ranks = dt_xcalloc(hosts->n, sizeof *ranks);
    for (size_t i = 0; i < used && rc == 0; i++) {
        ranks[i] = how->per_node;
        plan->oversubscribed |= how->per_node > hosts->v[i].slots;
        rc = check_host_takes(&hosts->v[i], how->per_node, how->no_oversubscribe, err);
    }
    if (rc == 0)
        number_ranks(plan, hosts, ranks, how->map_by);
    free(ranks);
    return rc;
}

int dt_plan_make(struct dt_plan *plan, const struct dt_hostlist *hosts, int np,
                 const struct dt_placement *how, struct dt_error *err)
{
    *plan = (struct dt_plan){ 0 };
    if (!hosts->n)
        return dt_error_usage(err, "there is no host to run on");
    if (total_slots(hosts, &plan->slots, err) < 0)
        return -1;
    return how->per_node ? place_per_node(plan, hosts, np, how, err)
                         : place_by_slots(plan, hosts, np, how, err);
}

void dt_plan_copy(struct dt_plan *to, const struct dt_plan *from)
{
    *to = *from;
    to->nodes = dt_xcalloc(from->nnodes, sizeof *to->nodes);
    to->node_of = dt_xcalloc((size_t)from->nprocs, sizeof *to->node_of);
    to->numbers = dt_xcalloc((size_t)from->nprocs, sizeof *to->numbers);
    memcpy(to->nodes, from->nodes, from->nnodes * sizeof *to->nodes);
    memcpy(to->node_of, from->node_of, (size_t)from->nprocs * sizeof *to->node_of);
    list_numbers(to);
}

const struct dt_plan_node *dt_plan_node_of(const struct dt_plan *plan, int number)
{
    return number >= 0 && number < plan->nprocs ? &plan->nodes[plan->node_of[number]] : NULL;
}

const struct dt_plan_node *dt_plan_node_on(const struct dt_plan *plan, size_t host)
{
    for (size_t i = 0; i < plan->nnodes; i++) {
        if (plan->nodes[i].host == host)
            return &plan->nodes[i];
    }
    return NULL;
}

int dt_plan_servers(const struct dt_plan *plan)
{
    return plan->nprocs > plan->np ? plan->nprocs - plan->np - 1 : 0;
}

uint32_t dt_plan_local_rank(const struct dt_plan_node *node, int rank)
{
    return (uint32_t)dt_u32s_find(&node->ranks, (uint32_t)rank);
}

void dt_plan_free(struct dt_plan *plan)
{
    free(plan->nodes);
    free(plan->node_of);
    free(plan->numbers);
    *plan = (struct dt_plan){ 0 };
}
