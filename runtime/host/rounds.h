/* The rounds in which the ranks of a host work together: how each says how far it is, and waits for
 * the others. What shm.c is made of.
 *
 * A rank says how far it is in one of two cache lines, by the round's parity. It begins a round
 * only when everybody has left the round before the last one, so what it wrote there, in the line
 * and in that half of its staging, is read no more. */
#ifndef DT_HOST_ROUNDS_H
#define DT_HOST_ROUNDS_H

#include "runtime/host/shm.h"

enum dt_phase {                 /* of a round; progress is 4 * round + one of these */
                DT_IN = 1,      /* the rank's data stand in its line or its staging */
                DT_REDUCED = 2, /* its slice of the result does */
                DT_LEFT = 3,    /* it reads nobody's data any more */
};

/* Begins the next round: returns when this rank's line and half of the staging may be written. */
dt_result_t dt_round_begin(struct dt_shm *s);
/* Likewise, for a rank that only reads in this round. */
void dt_round_join(struct dt_shm *s);
/* Says that this rank is so far, and shows what it wrote before. */
void dt_round_publish(struct dt_shm *s, enum dt_phase phase);
dt_result_t dt_round_await(struct dt_shm *s, uint32_t peer, enum dt_phase phase);
dt_result_t dt_round_await_all(struct dt_shm *s, enum dt_phase phase);

static inline struct dt_hostshm_post *dt_round_post(const struct dt_shm *s, uint32_t local_rank)
{
    return &s->map.ranks[local_rank].posts[s->round & 1];
}

static inline uint8_t *dt_round_half(const struct dt_shm *s, uint32_t local_rank)
{
    return dt_hostshm_staging(&s->map, local_rank, s->round & 1);
}

#endif
