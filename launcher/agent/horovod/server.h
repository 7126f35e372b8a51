/* The rendezvous server of one generation of a Horovod job, at a port of its own: what ranks of an
 * earlier generation have said is never seen. One connection is one request. Clients that are
 * silent or slow give way to others, and are heard for a limited time. */
#ifndef DT_AGENT_HOROVOD_SERVER_H
#define DT_AGENT_HOROVOD_SERVER_H

#include <stdint.h>
#include <uv.h>

struct dt_rendezvous;

struct dt_rendezvous_events {
    /* Once: a client asked for more than there is room for. text: for the user. */
    void (*overflow)(void *arg, const char *text);
};

/* Listens, so that clients find it from now on; they are answered once it was opened. NULL with
 * errno. */
struct dt_rendezvous *dt_rendezvous_create(uv_loop_t *loop, uint32_t np,
                                           const struct dt_rendezvous_events *events, void *arg);
uint16_t dt_rendezvous_port(const struct dt_rendezvous *r);

/* addr: who has connected to another address of this host is not answered; NULL: to any. */
void dt_rendezvous_open(struct dt_rendezvous *r, const char *addr);
void dt_rendezvous_destroy(struct dt_rendezvous *r); /* accepts NULL */

#endif
