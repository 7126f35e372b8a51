/* Sends what the ranks print to the launcher, as bytes: the launcher makes lines of them.
 *
 * A stream is read only while the launcher has given credit for it and the channel has room. So a
 * slow reader at the far end makes the rank wait, and the agent keeps nothing. */
#ifndef DT_AGENT_IO_RELAY_H
#define DT_AGENT_IO_RELAY_H

#include <uv.h>

#include "launcher/agent/io/channel.h"

struct dt_relay;

/* numbers are those of the processes (role.h). ended is called once, after dt_relay_finish, when
 * all streams have been sent to their end. */
struct dt_relay *dt_relay_create(uv_loop_t *loop, struct dt_channel *channel,
                                 const struct dt_u32s *numbers, void (*ended)(void *arg),
                                 void *arg);
/* Takes over the reading end of the pipe, or of the pseudo-terminal, that is stdout (1) or stderr
 * (2) of numbers->v[index]. */
void dt_relay_add(struct dt_relay *r, uint32_t index, int stream, int fd);
/* Adds n bytes, at most PIPE_BUF, to what the rank itself prints on the stream. Returns false if
 * the stream has no room or has ended. */
bool dt_relay_print(struct dt_relay *r, uint32_t rank, uint8_t stream, const void *data, size_t n);
void dt_relay_credit(struct dt_relay *r, uint32_t rank, uint8_t stream, uint32_t bytes);
void dt_relay_room(struct dt_relay *r); /* the channel has room again */
/* No process of the job can write any more: each stream ends with what its pipe holds now, even if
 * an unrelated process keeps the pipe open. */
void dt_relay_finish(struct dt_relay *r);
void dt_relay_destroy(struct dt_relay *r); /* accepts NULL */

#endif
