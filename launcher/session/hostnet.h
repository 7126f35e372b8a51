/* Hosts that must reach each other: which addresses of each to try, what to ask their agents, and
 * what to tell the user. It sends nothing and keeps no connection, so that a job and a check can
 * both use it. */
#ifndef DT_SESSION_HOSTNET_H
#define DT_SESSION_HOSTNET_H

#include "launcher/base/strbuf.h"
#include "launcher/session/reach.h"

struct dt_hostnet_node { /* its owner keeps what it points to */
    const char *name;
    const char *given; /* addr= of the hostfile, or NULL */
    const char *addr;  /* of HELLO, as the next three */
    const char *peer_addr;
    const struct dt_msg_list *netaddrs;
    uint16_t port;
};

struct dt_hostnet {
    const char *iface; /* --iface, or NULL */
    struct dt_hostnet_node *nodes;
    struct dt_reach_node *reach; /* by node, as the next */
    uint32_t n;
};

/* The caller fills in nodes, then calls dt_hostnet_list_addresses. */
void dt_hostnet_init(struct dt_hostnet *net, uint32_t n, const char *iface);
void dt_hostnet_free(struct dt_hostnet *net);

/* One host is independent of its network, unless --iface was given. */
bool dt_hostnet_is_alone(const struct dt_hostnet *net);
/* Lists which addresses of each node are worth trying. Returns whether all have some. Calls
 * unusable with the reason for each node that needs an address and has none. */
bool dt_hostnet_list_addresses(struct dt_hostnet *net,
                               void (*unusable)(void *arg, uint32_t node, const char *why),
                               void *arg);

/* Fills in node and targets of a PROBE; the rest is the caller's. targets: room for them all; what
 * they hold is freed by dt_hostnet_free_targets. */
void dt_hostnet_probe(const struct dt_hostnet *net, uint32_t node, struct dt_msg_probe *m,
                      struct dt_msg_target targets[DT_REACH_TARGETS]);
/* One target: the addresses of to, or only the one given by its index. */
void dt_hostnet_target(const struct dt_hostnet *net, uint32_t to, uint32_t from_addr, uint32_t n,
                       struct dt_msg_target *target);
void dt_hostnet_free_targets(struct dt_msg_probe *m);
/* Keeps what a node has answered; *results is emptied. */
void dt_hostnet_reached(struct dt_hostnet *net, uint32_t node, struct dt_msg_list *results);

/* What caller found at the addresses of target, none of which works: "cannot reach host3 at ..." */
void dt_hostnet_say_cut(struct dt_strbuf *out, const struct dt_hostnet *net, uint32_t caller,
                        uint32_t target);
/* "has no address at which all hosts reach it: host1 at 10.0.0.2, host3 at 10.1.0.2" */
void dt_hostnet_say_divided(struct dt_strbuf *out, const struct dt_hostnet *net, uint32_t target);

/* A copy of HELLO's addrs, and its end. */
struct dt_msg_list dt_netaddrs_copy(const struct dt_msg_list *addrs);
void dt_netaddrs_free(struct dt_msg_list *addrs);

#endif
