/* Which hosts probe which, and what follows from their answers. Pure.
 *
 * Every host connects to its neighbours in the ring and to the first host, where MASTER_ADDR is:
 * three for each, however many there are. Nodes are numbered as in the plan. */
#ifndef DT_SESSION_REACH_H
#define DT_SESSION_REACH_H

#include <stdbool.h>

#include "launcher/place/iface.h"

enum { DT_REACH_TARGETS = 3 };

/* Which nodes a node probes: the next, the previous and the first; each once and never itself. */
uint32_t dt_reach_targets(uint32_t node, uint32_t nodes, uint32_t targets[DT_REACH_TARGETS]);

enum { DT_REACH_NOWHERE = DT_CANDIDATES_MAX };

struct dt_reach_node {
    struct dt_candidates candidates;
    struct dt_msg_list results; /* struct dt_msg_reached, from its REACH */
    uint32_t chosen;            /* index into the candidates, or DT_REACH_NOWHERE */
};

enum dt_reach_outcome {
    DT_REACH_CHOSEN,  /* every node has an address at which all who tried reach it */
    DT_REACH_DIVIDED, /* all reach all they tried, but some node not at one address */
    DT_REACH_CUT,     /* a node does not reach one that it tried */
};

/* When all have answered: sets every node's chosen, and says whether that is well. */
enum dt_reach_outcome dt_reach_choose(struct dt_reach_node *nodes, uint32_t n);

/* When it is not well: the nodes without which it may be, so far as tried; true in out (of n, all
 * false). Of two between which the way is broken it is the one with more such ways, else the later.
 */
void dt_reach_leave_out(const struct dt_reach_node *nodes, uint32_t n, bool *out);

/* The addresses of target that caller reaches, as bits. */
uint32_t dt_reach_mask(const struct dt_reach_node *nodes, uint32_t caller, uint32_t target);

#endif
