/* TCP by numeric addresses, without the resolver: IPv4, IPv6, and IPv6 with %interface. Every
 * socket is non-blocking and close-on-exec. */
#ifndef DT_WIRE_INET_H
#define DT_WIRE_INET_H

#include <stdbool.h>
#include <stdint.h>

/* Listens on every address of this host. Returns a descriptor, or -1 with errno. */
int dt_inet_listen(uint16_t *port);

/* Begins to connect; that it is through, or why not, is told by the descriptor becoming writable.
 * Returns it, or -1 with errno (EINVAL: addr is no address). */
int dt_inet_connect(const char *addr, uint16_t port);

/* Whether that is the address of this end of a connection. */
bool dt_inet_is_at(int fd, const char *addr);

#endif
