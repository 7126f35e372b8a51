/* The rounds of a call within a host: how each rank announces its progress and waits for the
 * others. shm.c is built on them.
 *
 * A rank writes its own posts and staging area, and reads those of all ranks. It announces its
 * progress in one of its two posts, chosen by the parity of the round. It begins round n only when
 * all ranks have left round n - 2, so no rank still reads what it wrote to that post.
 *
 * Small messages are staged in one of two fixed places, chosen by the parity of the round. These
 * places stay in the caches, which helps most where ranks share a core and its caches. The rest of
 * the staging area is a ring, of which each round takes the next bytes. All ranks take the same
 * number, and so know where the data of the others are. A round takes at most a quarter of the
 * staging area. So wherever the ring wraps around, its bytes are never those of the round before,
 * which may still be read. Calls do not start at the beginning of the ring, because a cache line
 * that another CPU has just read is slow to write. By the time the ring wraps around, that line has
 * left the other CPU's cache. */
#ifndef DT_SHM_ROUNDS_H
#define DT_SHM_ROUNDS_H

#include "runtime/shm/shm.h"

/* The phases of a round. A post's progress is 4 * round + one of these. */
enum dt_phase {
    DT_IN = 1,      /* the rank's data are in its post or its staging area */
    DT_REDUCED = 2, /* its block of the result is in its staging area or at its destination */
    DT_LEFT = 3,    /* it does not read other ranks' data any more */
};

/* Begins the next round. bytes: the most that a rank stages in it; dt_round_most is the limit.
 * Returns when this rank's post and that part of its staging area may be written. */
dt_result_t dt_round_begin(struct dt_shm *s, size_t bytes);
/* The same without waiting, for a rank that only reads in this round. */
void dt_round_join(struct dt_shm *s, size_t bytes);
/* Called after staging small data, before publishing them: moves them to a cache from which the
 * readers get them sooner. */
void dt_round_demote(const struct dt_shm *s);
/* Announces that this rank has reached the phase, and makes its earlier writes visible. */
void dt_round_publish(struct dt_shm *s, enum dt_phase phase);
/* Whether this rank has announced the phase. */
bool dt_round_has_published(const struct dt_shm *s, enum dt_phase phase);
/* Whether at least one rank has left the round. */
bool dt_round_some_left(const struct dt_shm *s);
dt_result_t dt_round_await(struct dt_shm *s, uint32_t peer, enum dt_phase phase);
dt_result_t dt_round_await_all(struct dt_shm *s, enum dt_phase phase);

/* For a rank that has other work to do: whether dt_round_begin would begin the next round without
 * waiting (dt_round_join then does the same), and whether all ranks have announced the phase. */
bool dt_round_is_free(const struct dt_shm *s);
bool dt_round_all_published(const struct dt_shm *s, enum dt_phase phase);

/* The next two are for ranks that communicate in pairs, outside of the rounds (sendrecv.h).
 *
 * Call this after a store for which peer's threads may wait: wakes those that sleep in dt_shm_wait.
 */
void dt_shm_wake_one(const struct dt_shm *s, uint32_t peer);
/* Waits as in a round until done(arg) is true. A peer that makes it true calls dt_shm_wake_one. */
dt_result_t dt_shm_wait(struct dt_shm *s, bool (*done)(const void *arg), const void *arg);

/* Copies from or to another rank's memory. False: the communicator was stopped before the end. */
bool dt_shm_copy(const struct dt_shm *s, uint8_t *to, const uint8_t *from, size_t bytes);
/* Returns DT_OK, or what has stopped the communicator, and stores that as the coll_error. After a
 * rank has read another rank's memory directly, DT_OK says that the data were valid: a rank whose
 * call fails keeps its buffer until the communicator is stopped. */
dt_result_t dt_shm_check(const struct dt_shm *s);
/* Call this after a call was stopped, before looking for ranks that may be writing to this rank's
 * memory. A rank that has not announced a write by then sees the stop. */
void dt_shm_fence(const struct dt_shm *s);
/* After dt_shm_fence: dt_shm_outlast waits until those writes have ended, dt_round_outlast until
 * all other live ranks have announced the phase. Both give up after about a second, because a rank
 * may be suspended (SIGSTOP). */
void dt_shm_outlast(bool (*ended)(void *arg), void *arg);
void dt_round_outlast(const struct dt_shm *s, enum dt_phase phase);
/* Whether this rank's death has stopped the communicator. */
bool dt_shm_is_dead(const struct dt_shm *s, uint32_t peer);

static inline struct dt_hostshm_post *dt_round_post(const struct dt_shm *s, uint32_t local_rank)
{
    return &s->map.ranks[local_rank].posts[s->round & 1];
}

static inline size_t dt_round_most(const struct dt_shm *s)
{
    return s->map.room / DT_HOSTSHM_ROUNDS;
}

/* Where a rank stages its data of this round; aligned to a pair of cache lines. */
static inline uint8_t *dt_round_staging(const struct dt_shm *s, uint32_t local_rank)
{
    return dt_hostshm_staging(&s->map, local_rank) + s->at;
}

#endif
