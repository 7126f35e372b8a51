/* The addresses of a name, found without making the event loop wait. */
#ifndef DT_REMOTE_RESOLVE_H
#define DT_REMOTE_RESOLVE_H

#include <netdb.h>
#include <uv.h>

struct dt_resolve;

/* list: for freeaddrinfo, the callee's; NULL with the reason in why, or after a cancel. */
typedef void (*dt_resolve_f)(void *arg, struct addrinfo *list, const char *why);

/* done is called once, from the loop. */
struct dt_resolve *dt_resolve_open(uv_loop_t *loop, const char *hostname, int port,
                                   dt_resolve_f done, void *arg);
void dt_resolve_cancel(struct dt_resolve *r); /* done comes soon, however silent the name server */

#endif
