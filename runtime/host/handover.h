/* Data from one rank of a host to another, through the pipes between them; or, where both buffers
 * stand in segments (segment.h), straight, a half by each of the two.
 *
 * Both ranks first tell each other their call, so that both learn where the two do not fit; what
 * does not is never written to the taker's buffer. A call returns when the other rank has made its
 * own, and buf belongs to the caller again. */
#ifndef DT_HOST_HANDOVER_H
#define DT_HOST_HANDOVER_H

#include "runtime/host/shm.h"

/* peer: a local rank, not this one. call is the same on both sides. */
dt_result_t dt_handover_give(struct dt_shm *s, const struct dt_call *call, const void *buf,
                             size_t bytes, uint32_t peer);
dt_result_t dt_handover_take(struct dt_shm *s, const struct dt_call *call, void *buf, size_t bytes,
                             uint32_t peer);

#endif
