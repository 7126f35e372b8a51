/* TCP by numeric address, without the resolver: IPv4, IPv6, and IPv6 with %interface. Every socket
 * is non-blocking and close-on-exec. */
#ifndef DT_WIRE_INET_H
#define DT_WIRE_INET_H

#include <stdbool.h>
#include <stdint.h>

/* Listens on every address of this host, and sets *port to the port that the kernel chose. Returns
 * a descriptor, or -1 with errno. */
int dt_inet_listen(uint16_t *port);

/* Begins to connect. The descriptor becomes writable when the attempt has succeeded or failed.
 * Returns it, or -1 with errno (EINVAL: addr is not an address). */
int dt_inet_connect(const char *addr, uint16_t port);

/* Whether addr is the local address of the connection. */
bool dt_inet_is_at(int fd, const char *addr);

#endif
