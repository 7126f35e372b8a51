/* Hosts that must reach each other: which addresses of each to try, what to ask their agents, and
 * what to tell the user. It sends nothing and keeps no connection, so that both a job and a check
 * can use it. */
#ifndef DT_SESSION_HOSTNET_H
#define DT_SESSION_HOSTNET_H

#include "launcher/base/strbuf.h"
#include "launcher/session/reach.h"

struct dt_hostnet_node { /* the caller owns what it points to */
    const char *name;
    const char *given; /* addr= of the hostfile, or NULL */
    const char *addr;  /* from HELLO, like the next three */
    const char *peer_addr;
    const struct dt_msg_list *netaddrs;
    uint16_t port;
};

struct dt_hostnet {
    const char *iface; /* --iface, or NULL */
    struct dt_hostnet_node *nodes;
    struct dt_reach_node *reach; /* by node, like nodes */
    uint32_t n;
};

/* The caller fills in nodes, then calls dt_hostnet_list_addresses. */
void dt_hostnet_init(struct dt_hostnet *net, uint32_t n, const char *iface);
void dt_hostnet_free(struct dt_hostnet *net);

/* A single host needs no network, unless --iface was given. */
bool dt_hostnet_is_alone(const struct dt_hostnet *net);
/* Lists which addresses of each node are worth trying. Returns whether every node has one. Calls
 * unusable, with the reason, for each node that needs an address and has none. */
bool dt_hostnet_list_addresses(struct dt_hostnet *net,
                               void (*unusable)(void *arg, uint32_t node, const char *why),
                               void *arg);

/* Fills in node and targets of a PROBE; the caller fills in the rest. targets has room for all of
 * them. Free their contents with dt_hostnet_free_targets. */
void dt_hostnet_probe(const struct dt_hostnet *net, uint32_t node, struct dt_msg_probe *m,
                      struct dt_msg_target targets[DT_REACH_TARGETS]);
/* Makes a target of up to n addresses of node "to", starting with address from_addr. */
void dt_hostnet_target(const struct dt_hostnet *net, uint32_t to, uint32_t from_addr, uint32_t n,
                       struct dt_msg_target *target);
void dt_hostnet_free_targets(struct dt_msg_probe *m);
/* Stores the answer of a node and empties *results. */
void dt_hostnet_reached(struct dt_hostnet *net, uint32_t node, struct dt_msg_list *results);

/* Writes what caller found at the addresses of target if none works: "cannot reach host3 at ..." */
void dt_hostnet_describe_unreachable(struct dt_strbuf *out, const struct dt_hostnet *net,
                                     uint32_t caller, uint32_t target);
/* Writes "has no address at which all hosts reach it: host1 at 10.0.0.2, host3 at 10.1.0.2". */
void dt_hostnet_describe_divided(struct dt_strbuf *out, const struct dt_hostnet *net,
                                 uint32_t target);

/* dt_netaddrs_copy copies the addrs of HELLO; dt_netaddrs_free frees the copy. */
struct dt_msg_list dt_netaddrs_copy(const struct dt_msg_list *addrs);
void dt_netaddrs_free(struct dt_msg_list *addrs);

#endif
