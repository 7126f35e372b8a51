/* Placement: hosts x -np to the rank table. Pure; a plan never changes once made. */
#ifndef DT_PLACE_PLAN_H
#define DT_PLACE_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "launcher/base/error.h"
#include "launcher/hosts/hostlist.h"

struct dt_plan_node { /* a host that has at least one rank */
    size_t host;      /* index into the host list */
    int node_rank;
    int first_rank; /* its ranks are first_rank .. first_rank + local_size - 1 */
    int local_size;
};

struct dt_plan {
    int np;
    int slots; /* of all hosts together */
    bool oversubscribed;
    struct dt_plan_node *nodes;
    size_t nnodes;
};

/* np 0: one rank per slot. Fails when max_slots or oversubscription forbids it. */
int dt_plan_make(struct dt_plan *plan, const struct dt_hostlist *hosts, int np,
                 bool no_oversubscribe, struct dt_error *err);
/* per_node ranks on each host in order; np 0: on every host. Fails when np is no multiple of
 * per_node or more than the hosts take. Oversubscribed is a plan with more ranks than slots on any
 * host. */
int dt_plan_make_per_node(struct dt_plan *plan, const struct dt_hostlist *hosts, int np,
                          int per_node, bool no_oversubscribe, struct dt_error *err);
const struct dt_plan_node *dt_plan_node_of(const struct dt_plan *plan, int rank);
void dt_plan_free(struct dt_plan *plan);

#endif
