/* The rendezvous server of one generation of a Horovod job. It has its own port, so that it never
 * sees what ranks of an earlier generation send. One connection is one request. Clients that are
 * silent or slow give way to others, and are served for a limited time. */
#ifndef DT_AGENT_HOROVOD_RENDEZVOUS_H
#define DT_AGENT_HOROVOD_RENDEZVOUS_H

#include <stdint.h>
#include <uv.h>

struct dt_rendezvous;

struct dt_rendezvous_events {
    /* Called once: a client asked for more than there is room for. text is for the user. */
    void (*overflow)(void *arg, const char *text);
};

/* Listens, so that clients can connect from now on; they are answered after dt_rendezvous_open.
 * Returns NULL with errno on failure. */
struct dt_rendezvous *dt_rendezvous_create(uv_loop_t *loop, uint32_t np,
                                           const struct dt_rendezvous_events *events, void *arg);
uint16_t dt_rendezvous_port(const struct dt_rendezvous *r);

/* Clients that have connected to another address of this host than addr are not answered; NULL: all
 * are answered. */
void dt_rendezvous_open(struct dt_rendezvous *r, const char *addr);
void dt_rendezvous_destroy(struct dt_rendezvous *r); /* accepts NULL */

#endif
