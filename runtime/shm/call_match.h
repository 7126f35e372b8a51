/* How the ranks of a host come together in a round, and see in the first one that they have made
 * the same call. What shm.c and alltoall.c have in common. */
#ifndef DT_SHM_CALL_MATCH_H
#define DT_SHM_CALL_MATCH_H

#include "runtime/shm/rounds.h"

/* Puts the call, and up to DT_HOSTSHM_INLINE bytes of data, into this rank's line of the round that
 * it has begun. To be followed by dt_call_match at once, or dt_round_publish: peers look at the
 * line all the time, and would fetch it between two stores that stood further apart. */
void dt_call_match_post(struct dt_shm *s, const struct dt_call *call, const void *data,
                        size_t bytes);
/* Says that this rank's data are there, and waits for everybody's. first: calls were posted in this
 * round; they are compared. */
dt_result_t dt_call_match(struct dt_shm *s, bool first);
/* Its second half, for who has published DT_IN. */
dt_result_t dt_call_match_others(struct dt_shm *s, bool first);
/* A round in which this is all that happens: everybody tells the others up to DT_HOSTSHM_INLINE
 * bytes, which then stand in the lines. */
dt_result_t dt_call_match_and_tell(struct dt_shm *s, const struct dt_call *call, const void *data,
                                   size_t bytes);
/* What a rank has told in the round. own: what this one has, whose line is not looked at: on some
 * processors it is in the others' caches alone, now that they have read it. */
static inline const void *dt_call_match_told(const struct dt_shm *s, uint32_t local_rank,
                                             const void *own)
{
    return local_rank == s->me ? own : dt_round_post(s, local_rank)->data;
}
/* When all have come to the first round of a call: whether they have made the same. */
bool dt_call_match_agrees(const struct dt_shm *s);

#endif
