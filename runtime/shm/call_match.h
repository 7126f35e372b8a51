/* How the ranks of a host meet in a round, and check in a call's first round that they make the
 * same call. Used by shm.c and alltoall.c. */
#ifndef DT_SHM_CALL_MATCH_H
#define DT_SHM_CALL_MATCH_H

#include "runtime/shm/rounds.h"

/* Writes the call, and up to DT_HOSTSHM_INLINE bytes of data, to this rank's post of the round that
 * it has begun. Call dt_call_match or dt_round_publish at once afterwards: peers poll the post, and
 * would fetch it between two stores that are far apart. */
void dt_call_match_post(struct dt_shm *s, const struct dt_call *call, const void *data,
                        size_t bytes);
/* Announces that this rank's data are ready, and waits for all ranks. first: compares the calls
 * that were posted in this round. */
dt_result_t dt_call_match(struct dt_shm *s, bool first);
/* The second half of dt_call_match, for a rank that has published DT_IN. */
dt_result_t dt_call_match_others(struct dt_shm *s, bool first);
/* A complete round in which each rank tells the others up to DT_HOSTSHM_INLINE bytes. They stay in
 * the posts. */
dt_result_t dt_call_match_and_tell(struct dt_shm *s, const struct dt_call *call, const void *data,
                                   size_t bytes);
/* What a rank has told the others in this round. own: what this rank has told them. Its own post is
 * not read, because on some processors it is now only in the caches of the ranks that have read it.
 */
static inline const void *dt_call_match_told(const struct dt_shm *s, uint32_t local_rank,
                                             const void *own)
{
    return local_rank == s->me ? own : dt_round_post(s, local_rank)->data;
}
/* Once all ranks are in the first round of a call: whether they make the same call. */
bool dt_call_match_agrees(const struct dt_shm *s);

#endif
