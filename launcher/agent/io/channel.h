/* The agent's end of the conversation with the launcher: frames on two descriptors, never blocking.
 *
 * Control messages overtake data between frames. The code that reads from ranks bounds what they
 * cause: it calls dt_channel_has_room before it reads, and continues after the room event. */
#ifndef DT_AGENT_IO_CHANNEL_H
#define DT_AGENT_IO_CHANNEL_H

#include <stdbool.h>
#include <uv.h>

#include "launcher/base/error.h"
#include "runtime/wire/msg.h"

struct dt_channel;

struct dt_channel_events {
    void (*heard)(void *arg);                                    /* bytes have arrived */
    void (*message)(void *arg, uint8_t type, union dt_msg *msg); /* msg is freed after the call */
    void (*room)(void *arg); /* there is room again after dt_channel_has_room returned false */
    /* The launcher has closed the connection (why is NULL), is lost, or does not speak the
     * protocol. Must not return. */
    void (*gone)(void *arg, const char *why);
};

/* First writes the marker line. Returns NULL with err if the descriptors are not pipes or sockets.
 */
struct dt_channel *dt_channel_open(uv_loop_t *loop, int in, int out,
                                   const struct dt_channel_events *events, void *arg,
                                   struct dt_error *err);
void dt_channel_send(struct dt_channel *c, uint8_t type, const void *msg);
/* Returns whether more may be read from ranks and sent. */
bool dt_channel_has_room(struct dt_channel *c);

#endif
