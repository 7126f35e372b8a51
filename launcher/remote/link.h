/* A link is the conversation with one agent. It opens a transport and starts the agent: over SSH it
 * skips what the login shell prints, and sends the agent's file if the host lacks it. Then it
 * carries messages (runtime/wire/msg.h). Control messages overtake data that waits in the link. */
#ifndef DT_REMOTE_LINK_H
#define DT_REMOTE_LINK_H

#include "launcher/remote/transport.h"
#include "runtime/wire/msg.h"

struct dt_link;

struct dt_link_events {
    void (*ready)(void *arg, const struct dt_msg_hello *hello); /* the agent said HELLO */
    /* Any later message. msg is freed after the call; move strings out of it as needed. */
    void (*message)(void *arg, uint8_t type, union dt_msg *msg);
    /* A line that the remote shell or agent printed outside the protocol. */
    void (*noise)(void *arg, const char *line);
    void (*drained)(void *arg); /* all that was sent has left this process's queues */
    /* Called exactly once, last; the link is freed after it. why->text is as in
     * dt_transport_events, without the host's name. It is empty if the agent ended normally. */
    void (*closed)(void *arg, const struct dt_error *why);
};

struct dt_link_config {
    const struct dt_transport_ops *transport;
    bool push;               /* send the agent if it is missing; false with --no-push */
    struct dt_remote remote; /* except for command and login */
};

/* What config points to must outlive the link. */
struct dt_link *dt_link_open(uv_loop_t *loop, const struct dt_link_config *config,
                             const struct dt_link_events *events, void *arg);
/* Before ready() and after the link has begun to close, a message is dropped. */
void dt_link_send(struct dt_link *link, uint8_t type, const void *msg);
/* Sends a message that dt_msg_frame has encoded once for many links. */
void dt_link_send_frames(struct dt_link *link, uint8_t type, const struct dt_put *frames);
/* Until ready(): the current step, as in "authenticate" or "agent start". */
const char *dt_link_phase(const struct dt_link *link);
size_t dt_link_pending(const struct dt_link *link); /* bytes not yet sent */
/* dt_link_carrier returns what carries the bytes ("libssh2"), dt_link_sent_agent whether the host
 * lacked the agent. Both work until closed() returns. */
const char *dt_link_carrier(const struct dt_link *link);
bool dt_link_sent_agent(const struct dt_link *link);
void dt_link_close(struct dt_link *link); /* ends it now */

#endif
