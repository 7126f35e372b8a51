/* The addresses of this host, as sent in HELLO. */
#ifndef DT_AGENT_FACTS_NETADDRS_H
#define DT_AGENT_FACTS_NETADDRS_H

#include "runtime/wire/msg.h"

/* Lists those of every interface that is up and has a carrier, IPv4 before IPv6, as struct
 * dt_msg_netaddr. */
void dt_netaddrs_list(struct dt_msg_list *list);

#endif
