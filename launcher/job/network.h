/* The network between the hosts of a generation: which addresses to try, what the agents find, and
 * which ones ranks are told. */
#ifndef DT_JOB_NETWORK_H
#define DT_JOB_NETWORK_H

#include "launcher/job/core/core.h"
#include "launcher/session/hostnet.h"

struct dt_network {
    const struct dt_core *core;
    const uint8_t *secret; /* by which agents prove themselves to each other */
    struct dt_hostnet net; /* of this generation, by node; it points into the links */
    uint32_t unanswered;   /* the number of PROBEs that have no answer yet */
    bool probing_all;      /* whether this is the second round, in which all addresses are tried */
    bool is_known;         /* whether it is known which addresses ranks use */
};

enum dt_network_news { DT_NETWORK_NO_NEWS, DT_NETWORK_KNOWN, DT_NETWORK_BROKEN };

/* Lists the addresses of each host that are candidates for a generation. Says which hosts have
 * none, and returns false if any host has none. */
bool dt_network_list_addresses(struct dt_network *w);
void dt_network_probe(struct dt_network *w); /* a generation begins: the agents try the addresses */
/* Says what is wrong when the news is that the network is broken. */
enum dt_network_news dt_network_on_reach(struct dt_network *w, struct dt_hostlink *h,
                                         struct dt_msg_reach *m);
/* When the network is broken: sets out[i] for each node to leave out so that the rest can reach
 * each other. The caller clears out first. */
void dt_network_leave_out(const struct dt_network *w, bool *out);
/* Where other hosts reach this one, and through which interface ("": any); once it is known. */
const char *dt_network_address(const struct dt_network *w, uint32_t node);
const char *dt_network_interface(const struct dt_network *w, uint32_t node);
void dt_network_free(struct dt_network *w);

#endif
