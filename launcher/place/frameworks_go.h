/* What GO says to the frameworks of --env: where their processes find each other. Pure. */
#ifndef DT_PLACE_FRAMEWORKS_GO_H
#define DT_PLACE_FRAMEWORKS_GO_H

#include <stdint.h>

#include "launcher/place/plan.h"
#include "runtime/wire/msg.h"

struct dt_frameworks_node { /* of the plan, by its node rank */
    const char *addr;       /* at which the others reach it */
    uint16_t free_port;     /* the first of DT_FREE_PORTS */
};

/* Sets what GO tells the frameworks in set, and those that use go->rendezvous_port. It is the same
 * for all hosts. With TensorFlow in set there must be ports for the ranks of each node. */
void dt_frameworks_go_fill(struct dt_msg_go *go, unsigned set, const struct dt_plan *plan,
                           const struct dt_frameworks_node *nodes);
void dt_frameworks_go_free(struct dt_msg_go *go); /* what dt_frameworks_go_fill has set */

/* Returns for how many ranks of a node there is a port for TensorFlow from its free port on. */
uint32_t dt_frameworks_go_ports(const struct dt_frameworks_node *node);

/* Returns why a rendezvous cannot work at this address of the first host, as in "Horovod needs
 * IPv4", or NULL if it can. */
const char *dt_frameworks_go_lacks(const char *addr);

#endif
