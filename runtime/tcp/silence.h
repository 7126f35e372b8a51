/* Notices a peer that acknowledges nothing any more. The kernel would go on trying for a quarter of
 * an hour. TCP_USER_TIMEOUT is no help: it would also end connections with a peer that is merely
 * busy, and reads nothing for a while. */
#ifndef DT_TCP_SILENCE_H
#define DT_TCP_SILENCE_H

#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>

enum { DT_SILENCE_S = 60 };

/* Looks at a connection at the time now, in ms. *since, first 0, is for this function alone: since
 * when the kernel sends the same data again without any answer. */
bool dt_silence_is_long(int64_t *since, int fd, int64_t now);

/* The same for what the kernel knows of the connection. Pure. */
bool dt_silence_continues(int64_t *since, const struct tcp_info *info, int64_t now);

#endif
