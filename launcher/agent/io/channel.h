/* The agent's end of the conversation with the launcher: frames on two descriptors, never blocking.
 *
 * Control messages overtake data at frame boundaries. What ranks cause is bounded by those who read
 * it from them: they ask dt_channel_has_room first and go on when told that there is room again. */
#ifndef DT_AGENT_CHANNEL_H
#define DT_AGENT_CHANNEL_H

#include <stdbool.h>
#include <uv.h>

#include "launcher/base/error.h"
#include "runtime/wire/msg.h"

struct dt_channel;

struct dt_channel_events {
    void (*heard)(void *arg);                                    /* bytes have come */
    void (*message)(void *arg, uint8_t type, union dt_msg *msg); /* msg is freed after it */
    void (*room)(void *arg); /* there was none, and now there is some */
    /* The launcher has closed the connection (why: NULL), is lost, or speaks another language. Must
     * not return. */
    void (*gone)(void *arg, const char *why);
};

/* Writes the marker line first. NULL with err set when the descriptors are no pipes or sockets. */
struct dt_channel *dt_channel_open(uv_loop_t *loop, int in, int out,
                                   const struct dt_channel_events *events, void *arg,
                                   struct dt_error *err);
void dt_channel_send(struct dt_channel *c, uint8_t type, const void *msg);
/* Whether more may be read from ranks, and sent. */
bool dt_channel_has_room(struct dt_channel *c);

#endif
