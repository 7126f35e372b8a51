/* Finds the addresses of a name without blocking the event loop. */
#ifndef DT_REMOTE_RESOLVE_H
#define DT_REMOTE_RESOLVE_H

#include <netdb.h>
#include <uv.h>

struct dt_resolve;

/* The callee frees list with freeaddrinfo. After a failure or a cancel it is NULL, with the reason
 * in why. */
typedef void (*dt_resolve_f)(void *arg, struct addrinfo *list, const char *why);

/* Calls done once, from the loop. */
struct dt_resolve *dt_resolve_open(uv_loop_t *loop, const char *hostname, int port,
                                   dt_resolve_f done, void *arg);
/* done follows soon, however slow the name server is. */
void dt_resolve_cancel(struct dt_resolve *r);

#endif
