#include "launcher/place/plan.h"

#include <stdlib.h>

#include "launcher/base/mem.h"
#include "runtime/wire/msg.h"

/* A heap of hosts, by how full they are: the top takes the next rank. */
struct heap {
    const struct dt_hostlist *hosts;
    const int *ranks; /* by host */
    size_t *v;        /* indices of hosts */
    size_t n;
};

/* Whether host a takes a rank before host b: fewer ranks per slot, then the order of the list. */
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

/* Places left more ranks where every slot is taken. Returns how many found no place. */
static int place_extra(const struct dt_hostlist *hosts, int *ranks, int left)
{
    struct heap h = { hosts, ranks, dt_xcalloc(hosts->n, sizeof(size_t)), 0 };

    for (size_t i = 0; i < hosts->n; i++)
        if (!is_full(&hosts->v[i], ranks[i]))
            h.v[h.n++] = i;
    for (size_t i = h.n; i-- > 0;)
        sift_down(&h, i);
    while (left && h.n) {
        size_t top = h.v[0];

        ranks[top]++;
        left--;
        if (is_full(&hosts->v[top], ranks[top]))
            h.v[0] = h.v[--h.n];
        sift_down(&h, 0);
    }
    free(h.v);
    return left;
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

static void number_ranks(struct dt_plan *plan, const struct dt_hostlist *hosts, const int *ranks)
{
    int next = 0;

    plan->nodes = dt_xcalloc(hosts->n, sizeof *plan->nodes);
    for (size_t i = 0; i < hosts->n; i++) {
        if (!ranks[i])
            continue;
        plan->nodes[plan->nnodes] = (struct dt_plan_node){
            .host = i, .node_rank = (int)plan->nnodes, .first_rank = next, .local_size = ranks[i]
        };
        plan->nnodes++;
        next += ranks[i];
    }
}

int dt_plan_make(struct dt_plan *plan, const struct dt_hostlist *hosts, int np,
                 bool no_oversubscribe, struct dt_error *err)
{
    int *ranks, left;

    *plan = (struct dt_plan){ 0 };
    if (!hosts->n)
        return dt_error_usage(err, "there is no host to run on");
    if (total_slots(hosts, &plan->slots, err) < 0)
        return -1;
    plan->np = np ? np : plan->slots;
    plan->oversubscribed = plan->np > plan->slots;
    if (plan->oversubscribed && no_oversubscribe)
        return dt_error_usage(err,
                              "%d ranks do not fit on %d slots, and --no-oversubscribe was given",
                              plan->np, plan->slots);
    ranks = dt_xcalloc(hosts->n, sizeof *ranks);
    left = plan->np;
    for (size_t i = 0; i < hosts->n; i++) {
        ranks[i] = left < hosts->v[i].slots ? left : hosts->v[i].slots;
        left -= ranks[i];
    }
    left = place_extra(hosts, ranks, left);
    if (left == 0)
        number_ranks(plan, hosts, ranks);
    free(ranks);
    if (left)
        return dt_error_usage(err, "%d ranks are too many: with max_slots the hosts take %d",
                              plan->np, plan->np - left);
    return 0;
}

static int check_per_node(const struct dt_hostlist *hosts, int np, int per_node,
                          struct dt_error *err)
{
    if (!hosts->n)
        return dt_error_usage(err, "there is no host to run on");
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

int dt_plan_make_per_node(struct dt_plan *plan, const struct dt_hostlist *hosts, int np,
                          int per_node, bool no_oversubscribe, struct dt_error *err)
{
    size_t used;
    int *ranks, rc = 0;

    *plan = (struct dt_plan){ 0 };
    if (check_per_node(hosts, np, per_node, err) < 0 || total_slots(hosts, &plan->slots, err) < 0)
        return -1;
    used = np ? (size_t)(np / per_node) : hosts->n;
    plan->np = (int)used * per_node;
    ranks = dt_xcalloc(hosts->n, sizeof *ranks);
    for (size_t i = 0; i < used && rc == 0; i++) {
        ranks[i] = per_node;
        plan->oversubscribed |= per_node > hosts->v[i].slots;
        rc = check_host_takes(&hosts->v[i], per_node, no_oversubscribe, err);
    }
    if (rc == 0)
        number_ranks(plan, hosts, ranks);
    free(ranks);
    return rc;
}

const struct dt_plan_node *dt_plan_node_of(const struct dt_plan *plan, int rank)
{
    size_t low = 0, high = plan->nnodes;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct dt_plan_node *node = &plan->nodes[middle];

        if (rank < node->first_rank)
            high = middle;
        else if (rank >= node->first_rank + node->local_size)
            low = middle + 1;
        else
            return node;
    }
    return NULL;
}

void dt_plan_free(struct dt_plan *plan)
{
    free(plan->nodes);
    *plan = (struct dt_plan){ 0 };
}
