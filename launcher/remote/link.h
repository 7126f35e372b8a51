/* A link is the conversation with one agent: it opens the right transport, brings the agent up
 * (over SSH it skips what the login shell prints and sends the agent's file where the host lacks
 * it), and then carries messages (runtime/wire/msg.h). Control messages overtake data that waits in
 * the outbox. */
#ifndef DT_REMOTE_LINK_H
#define DT_REMOTE_LINK_H

#include "launcher/remote/transport.h"
#include "runtime/wire/msg.h"

struct dt_link;

struct dt_link_events {
    void (*ready)(void *arg, const struct dt_msg_hello *hello); /* the agent said HELLO */
    /* Any later message. msg is freed after the call; take strings out of it as needed. */
    void (*message)(void *arg, uint8_t type, union dt_msg *msg);
    /* Text that the remote shell or agent printed outside the protocol, a line at a time. */
    void (*noise)(void *arg, const char *line);
    void (*drained)(void *arg);
    /* Exactly once, last; the link is freed after it. why->text as in dt_transport_events, without
     * the host's name; empty when the agent ended in order. */
    void (*closed)(void *arg, const struct dt_error *why);
};

struct dt_link_config {
    const struct dt_transport_ops *transport;
    const struct dt_host *host;
    const char *agent_path; /* the local dtrun-agent file: executed, or sent */
    bool push;              /* send the agent where it is missing; false with --no-push */
    bool alone;             /* the job has no other host */
    bool accept_new;
    const struct dt_strs *rsh; /* as in struct dt_remote */
};

/* config and what it points to must outlive the link. */
struct dt_link *dt_link_open(uv_loop_t *loop, const struct dt_link_config *config,
                             const struct dt_link_events *events, void *arg);
void dt_link_send(struct dt_link *link, uint8_t type, const void *msg);
/* A message that dt_msg_frame has encoded, once for many links. */
void dt_link_send_frames(struct dt_link *link, uint8_t type, const struct dt_put *frames);
/* Until ready(): what is being done, as "authenticate" or "agent start". */
const char *dt_link_phase(const struct dt_link *link);
size_t dt_link_pending(const struct dt_link *link); /* data bytes not yet sent */
/* What carries the bytes ("libssh2"), and whether the host lacked the agent. Until closed()
 * returns.
 */
const char *dt_link_carrier(const struct dt_link *link);
bool dt_link_sent_agent(const struct dt_link *link);
void dt_link_close(struct dt_link *link); /* end now */

#endif
