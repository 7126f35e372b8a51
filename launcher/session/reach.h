/* Which hosts probe which, and what follows from their answers. Pure.
 *
 * Every host connects to its neighbours in a ring and to the first host, which serves MASTER_ADDR:
 * three connections for each host, however many hosts there are. Nodes are numbered as in the plan.
 */
#ifndef DT_SESSION_REACH_H
#define DT_SESSION_REACH_H

#include <stdbool.h>

#include "launcher/place/iface.h"

enum { DT_REACH_TARGETS = 3 };

/* Lists the nodes that a node probes: the next, the previous and the first, each once and never
 * itself. */
uint32_t dt_reach_targets(uint32_t node, uint32_t nodes, uint32_t targets[DT_REACH_TARGETS]);

/* Nodes measure the paths to their successors in the ring, in rounds, so that no node takes part in
 * two measurements at once. dt_reach_rounds returns how many rounds n nodes need: none for one
 * node, else two, or three if n is odd. dt_reach_round_of returns the round in which node i
 * measures. */
size_t dt_reach_rounds(size_t n);
size_t dt_reach_round_of(size_t i, size_t n);

enum { DT_REACH_NOWHERE = DT_CANDIDATES_MAX };

struct dt_reach_node {
    struct dt_candidates candidates;
    struct dt_msg_list results; /* of struct dt_msg_reached, from its REACH */
    uint32_t chosen;            /* index into the candidates, or DT_REACH_NOWHERE */
};

enum dt_reach_outcome {
    DT_REACH_CHOSEN,  /* every node has an address at which all its callers reach it */
    DT_REACH_DIVIDED, /* all callers reach their targets, but some node has no address that works
                         for all its callers */
    DT_REACH_CUT,     /* some node cannot reach one of its targets */
};

/* When all have answered: sets every node's chosen, and returns the outcome. */
enum dt_reach_outcome dt_reach_choose(struct dt_reach_node *nodes, uint32_t n);

/* Call this if the outcome is bad. Marks in "out" (n elements, all false) the nodes that the job
 * should leave out so that it may work, as far as the probes show. Of two nodes with a broken
 * connection it leaves out the one with more broken connections, or else the later one. */
void dt_reach_leave_out(const struct dt_reach_node *nodes, uint32_t n, bool *out);

/* Returns the addresses of target that caller reaches, as bits. */
uint32_t dt_reach_mask(const struct dt_reach_node *nodes, uint32_t caller, uint32_t target);

#endif
