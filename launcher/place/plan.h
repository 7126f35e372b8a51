/* Placement: hosts x -np to the rank table. Pure; a plan never changes once made. */
#ifndef DT_PLACE_PLAN_H
#define DT_PLACE_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "launcher/base/error.h"
#include "launcher/hosts/hostlist.h"
#include "runtime/wire/codec.h"

enum dt_map_by {
    DT_MAP_BY_SLOT, /* rank after rank on one host until it is full, then on the next */
    DT_MAP_BY_NODE, /* one rank on each host in turn */
};

struct dt_placement {
    enum dt_map_by map_by;
    int per_node; /* so many ranks on each host; 0: as many as fit */
    bool no_oversubscribe;
    int servers; /* beside the ranks, with a scheduler; 0: neither; or DT_SERVERS_AS_RANKS */
};

enum { DT_SERVERS_AS_RANKS = -1 };

struct dt_plan_node { /* a host that has at least one rank */
    size_t host;      /* index into the host list */
    int node_rank;
    struct dt_u32s ranks;       /* ascending: the one at i has local rank i */
    struct dt_u32s auxiliaries; /* numbers as of role.h, ascending */
};

struct dt_plan {
    int np;
    int nprocs; /* ranks and auxiliaries */
    int slots;  /* of all hosts together */
    bool oversubscribed;
    struct dt_plan_node *nodes;
    size_t nnodes;
    uint32_t *node_of; /* by number (role.h): the process's place in nodes */
    uint32_t *numbers; /* what the nodes' lists are parts of */
};

/* np 0: one rank per slot, or per_node on every host. Fails when max_slots or no_oversubscribe
 * forbids it, and when np is no multiple of per_node or more than the hosts take so. With per_node
 * a plan is oversubscribed when any host has more ranks than slots. The scheduler runs beside rank
 * 0, servers in turn on the hosts that have ranks; they take no slots. */
int dt_plan_make(struct dt_plan *plan, const struct dt_hostlist *hosts, int np,
                 const struct dt_placement *how, struct dt_error *err);
void dt_plan_copy(struct dt_plan *to, const struct dt_plan *from);
/* Where the process of that number runs; NULL when the job has none. */
const struct dt_plan_node *dt_plan_node_of(const struct dt_plan *plan, int number);
/* That of a host, by its index; NULL when it has no rank. */
const struct dt_plan_node *dt_plan_node_on(const struct dt_plan *plan, size_t host);
int dt_plan_servers(const struct dt_plan *plan); /* as in struct dt_placement */
/* rank's place in node, where it runs. */
uint32_t dt_plan_local_rank(const struct dt_plan_node *node, int rank);
void dt_plan_free(struct dt_plan *plan);

#endif
