/* The network between the hosts of a generation: which addresses the agents try, what they find,
 * and which addresses the ranks use. */
#ifndef DT_JOB_NETWORK_H
#define DT_JOB_NETWORK_H

#include "launcher/job/core/core.h"
#include "launcher/session/hostnet.h"

struct dt_network {
    const struct dt_core *core;
    const uint8_t *secret; /* with which agents authenticate each other */
    struct dt_hostnet net; /* of this generation, by node; points into the links */
    uint32_t unanswered;   /* the number of PROBEs that have no answer yet */
    bool probing_all;      /* this is the second round, in which agents try all addresses */
    bool is_known;         /* the addresses that ranks use are known */
    struct dt_strs told;   /* what was wrong since they were known last, and the user was told */
};

enum dt_network_news { DT_NETWORK_NO_NEWS, DT_NETWORK_KNOWN, DT_NETWORK_BROKEN };

/* Lists each host's candidate addresses for a generation. If some hosts have none, names them to
 * the user and returns false. */
bool dt_network_list_addresses(struct dt_network *w);
/* Whether the host has an address at which others may reach it. */
bool dt_network_has_address(const struct dt_network *w, const struct dt_hostlink *h);
void dt_network_probe(struct dt_network *w); /* a generation begins: the agents try the addresses */
/* Tells the user what is wrong if it returns DT_NETWORK_BROKEN. */
enum dt_network_news dt_network_on_reach(struct dt_network *w, struct dt_hostlink *h,
                                         struct dt_msg_reach *m);
/* Call this if the network is broken. Sets out[i] for each node that must be left out so that the
 * others can reach each other. The caller clears out first. */
void dt_network_leave_out(const struct dt_network *w, bool *out);
/* The address at which other hosts reach this one, and its interface ("": any). Call these once
 * is_known is set. */
const char *dt_network_address(const struct dt_network *w, uint32_t node);
const char *dt_network_interface(const struct dt_network *w, uint32_t node);
void dt_network_free(struct dt_network *w);

#endif
