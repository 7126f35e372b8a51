/* Placement: makes the rank table from hosts and -np. Pure. When ranks have to move, the job makes
 * a new plan. */
#ifndef DT_PLACE_PLAN_H
#define DT_PLACE_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "launcher/base/error.h"
#include "launcher/hosts/hostlist.h"
#include "runtime/wire/codec.h"

enum dt_map_by {
    DT_MAP_BY_SLOT, /* fills one host with ranks, then the next */
    DT_MAP_BY_NODE, /* one rank on each host in turn */
};

struct dt_placement {
    enum dt_map_by map_by;
    int per_node; /* number of ranks on each host; 0: as many as fit */
    bool no_oversubscribe;
    /* for --env mxnet, or DT_SERVERS_AS_RANKS; if there are servers, one scheduler runs, too */
    int servers;
};

enum { DT_SERVERS_AS_RANKS = -1 }; /* as many servers as ranks */

struct dt_plan_node { /* a host that has at least one rank */
    size_t host;      /* index into the host list */
    int node_rank;
    struct dt_u32s ranks;       /* ascending: the rank at index i has local rank i */
    struct dt_u32s auxiliaries; /* numbers as in role.h, ascending */
};

struct dt_plan {
    int np;
    int nprocs; /* ranks and auxiliaries */
    int slots;  /* of all hosts together */
    bool oversubscribed;
    struct dt_plan_node *nodes;
    size_t nnodes;
    uint32_t *node_of; /* index into nodes, by number (role.h) */
    uint32_t *numbers; /* the storage of the nodes' lists */
};

/* np 0 means one rank per slot, or per_node on every host. Fails if max_slots or no_oversubscribe
 * forbids the placement, or if np is not a multiple of per_node or exceeds what the hosts take.
 * With per_node, a plan is oversubscribed if any host has more ranks than slots. The scheduler runs
 * beside rank 0. Servers run in turn on the hosts that have ranks. Neither takes a slot. */
int dt_plan_make(struct dt_plan *plan, const struct dt_hostlist *hosts, int np,
                 const struct dt_placement *how, struct dt_error *err);
void dt_plan_copy(struct dt_plan *to, const struct dt_plan *from);
/* Returns the node of the process with that number, or NULL if the job has no such process. */
const struct dt_plan_node *dt_plan_node_of(const struct dt_plan *plan, int number);
/* Returns the node of a host, given by index, or NULL if it has no rank. */
const struct dt_plan_node *dt_plan_node_on(const struct dt_plan *plan, size_t host);
int dt_plan_servers(const struct dt_plan *plan); /* returns their number */
/* Returns the local rank of rank, which runs on node. */
uint32_t dt_plan_local_rank(const struct dt_plan_node *node, int rank);
void dt_plan_free(struct dt_plan *plan);

#endif
