/* Which of a host's addresses are worth trying for what ranks say to each other, and in which
 * order. Pure.
 *
 * --iface takes a list as NCCL_SOCKET_IFNAME does: names by their beginning, "=" before the list
 * makes them whole names, "^" excludes; and networks (10.0.0.0/8) or addresses besides. */
#ifndef DT_PLACE_IFACE_H
#define DT_PLACE_IFACE_H

#include <stdbool.h>

#include "launcher/base/error.h"
#include "launcher/base/strbuf.h"
#include "runtime/wire/msg.h"

enum { DT_CANDIDATES_MAX = 16 };

struct dt_candidate { /* points into what it was chosen from */
    const char *addr;
    const char *iface; /* "": unknown */
    uint32_t mtu;      /* 0: unknown */
};

struct dt_candidates {
    struct dt_candidate v[DT_CANDIDATES_MAX]; /* best first */
    uint32_t n;
};

struct dt_iface_want {
    const char *list;      /* of --iface, or NULL */
    const char *addr;      /* the hostfile's addr=, or NULL: it alone counts */
    const char *preferred; /* an address that has worked already, or NULL */
};

/* Whether list can be understood; err then has exit code 2. */
int dt_iface_check(const char *list, struct dt_error *err);

/* addrs: struct dt_msg_netaddr, as HELLO has told them. Link-local addresses count only where there
 * are no wider ones; loopback, where there is nothing else, or where the list names it. n is 0 when
 * nothing fits. */
void dt_iface_choose(struct dt_candidates *out, const struct dt_msg_list *addrs,
                     const struct dt_iface_want *want);

bool dt_iface_is_loopback(const char *addr);

/* "eth0 (10.0.0.3, fd00::3), lo (127.0.0.1)", or "none". */
void dt_iface_describe(struct dt_strbuf *out, const struct dt_msg_list *addrs);

#endif
