/* Which of a host's addresses to try for the ranks' connections, and in which order. Pure.
 *
 * --iface takes a list as NCCL_SOCKET_IFNAME does: beginnings of names, or whole names if "="
 * precedes the list; "^" excludes. The list may also name networks (10.0.0.0/8) or addresses. */
#ifndef DT_PLACE_IFACE_H
#define DT_PLACE_IFACE_H

#include <stdbool.h>

#include "launcher/base/error.h"
#include "launcher/base/strbuf.h"
#include "runtime/wire/msg.h"

enum { DT_CANDIDATES_MAX = 16 };

struct dt_candidate { /* points into the list it was chosen from */
    const char *addr;
    const char *iface; /* "": unknown */
    uint32_t mtu;      /* 0: unknown */
};

struct dt_candidates {
    struct dt_candidate v[DT_CANDIDATES_MAX]; /* best first */
    uint32_t n;
};

struct dt_iface_want {
    const char *list;      /* --iface, or NULL */
    const char *addr;      /* the hostfile's addr=, or NULL; if given, no other address is tried */
    const char *preferred; /* an address that has already worked, or NULL */
};

/* Checks that list is valid; otherwise err has exit code 2. */
int dt_iface_check(const char *list, struct dt_error *err);

/* addrs holds struct dt_msg_netaddr, as HELLO listed them. Link-local addresses count only if there
 * are no wider ones. Loopback counts only if there is nothing else, or if the list names it. n is 0
 * if no address fits. */
void dt_iface_choose(struct dt_candidates *out, const struct dt_msg_list *addrs,
                     const struct dt_iface_want *want);

bool dt_iface_is_loopback(const char *addr);

/* Writes "eth0 (10.0.0.3, fd00::3), lo (127.0.0.1)", or "none". */
void dt_iface_describe(struct dt_strbuf *out, const struct dt_msg_list *addrs);

#endif
