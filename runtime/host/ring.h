/* Collectives among the leaders of the hosts (local rank 0 of each), over two connections each: to
 * the next host's leader and from the one before.
 *
 * What travels is a series of frames, and every frame names the call that it belongs to, so that
 * calls that do not fit are found by the first frame instead of hanging. A leader that fails tells
 * the next one why, which passes it on: the whole ring ends with one reason. */
#ifndef DT_HOST_RING_H
#define DT_HOST_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/host/alarm.h"
#include "runtime/wire/hostshm.h"

enum { DT_RING_SEGMENT = 256 * 1024 }; /* data bytes of a frame, at most */

struct dt_ring {
    uint32_t me; /* this host's place, and the number of hosts */
    uint32_t n;
    uint32_t rank; /* of this leader, of the next and of the one before */
    uint32_t next_rank;
    uint32_t prev_rank;
    int next; /* connections, or -1 */
    int prev;
    bool mid_frame; /* a frame to next has been sent in part */
    uint8_t *scratch;
    size_t scratch_bytes;
    unsigned spins;
    struct dt_alarm alarm;
};

void dt_ring_close(struct dt_ring *r);
/* Tells the next leader why nothing more will come, and closes. Bounded in time. */
void dt_ring_fail(struct dt_ring *r, dt_result_t why);

/* In place on every leader; size is by what DT_AVG divides. */
dt_result_t dt_ring_all_reduce(struct dt_ring *r, const struct dt_call *call, void *buf, int size);
/* From the leader at place root to all others. */
dt_result_t dt_ring_broadcast(struct dt_ring *r, const struct dt_call *call, void *buf,
                              size_t bytes, uint32_t root);
/* Returns when every leader has made this very call. */
dt_result_t dt_ring_barrier(struct dt_ring *r, const struct dt_call *call);

#endif
