/* Collectives among the ranks of one host, in memory that their agent provides.
 *
 * All ranks of the host make the same calls in the same order. A call is a series of rounds. In
 * each round a rank uses the next part of its staging area. It begins round n, and writes that
 * part, only after all ranks have left round n - 2 (rounds.h). So a round needs no more
 * synchronisations than its data flow requires. If the communicator is stopped (hostshm.h), every
 * wait ends, with that reason as its result.
 *
 * If the buffers of all ranks are in segments (segment.h), nothing is staged: in the first round
 * each rank's post says where its buffer is, and other ranks read the data there. All ranks decide
 * this alike, from what all have written. */
#ifndef DT_SHM_SHM_H
#define DT_SHM_SHM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/coll_error.h"
#include "runtime/base/tuning.h"
#include "runtime/diag/recorder.h"
#include "runtime/shm/cma.h"
#include "runtime/wire/hostshm.h"

struct dt_shm {
    struct dt_hostshm map;
    uint64_t comm;
    uint32_t me;
    uint32_t n;
    const uint32_t *ranks; /* the job's rank by local rank, for coll_error */
    uint64_t round;
    uint64_t signature; /* of this rank's call, as in its post: see call_match.c */
    size_t at;          /* offset of this round's data in every staging area */
    size_t staged;      /* bytes of this round, if they are in a fixed place; else 0 */
    size_t fixed_max;   /* bytes of the largest message that is staged in a fixed place */
    size_t next;        /* next offset in the ring behind the fixed places; 0: never used */
    uint64_t settled;   /* all ranks are known to have made this much progress */
    const struct dt_tuning *tuning; /* NULL: the defaults */
    bool crowded;                   /* there are fewer CPUs than ranks */
    bool packed;                    /* each CPU has two ranks or more, if they are spread evenly */
    uint32_t cpu;                   /* 1 + the CPU that this rank has announced, or 0 */
    uint64_t spins;                 /* polls and yields of a wait before it sleeps */
    uint64_t yields;
    enum dt_cma_reach reach; /* access to the memory of the ranks in this call */
    size_t small;            /* bytes up to which each rank reduces all of the data */
    size_t least_direct;     /* bytes from which two ranks try to copy directly */
    uint32_t pipes;          /* which of the two sets of pipes they use (hostshm.h) */
    struct dt_coll_error *coll_error;
    struct dt_ring *ring;  /* of the flight recorder, or NULL */
    const char *algorithm; /* for the flight recorder */
};

/* Completes a structure whose map, comm, me, n, ranks and coll_error are set. cpus: one bit for
 * each CPU that this process may use; cpus[0] has the first 64. */
void dt_shm_start(struct dt_shm *s, const uint64_t cpus[DT_HOSTSHM_CPUS / 64]);
/* Called after all ranks have met for the first time, or when the tuning has changed: decides how
 * to wait, from the number of CPUs of all ranks. */
void dt_shm_choose_wait(struct dt_shm *s);

/* Waits until every rank of the host makes this call. */
dt_result_t dt_shm_begin(struct dt_shm *s, const struct dt_call *call);
/* Likewise; *word becomes the sum over all ranks. */
dt_result_t dt_shm_begin_sum(struct dt_shm *s, const struct dt_call *call, uint64_t *word);

/* A whole all-reduce, checked like dt_shm_begin. in may be out. */
dt_result_t dt_shm_all_reduce(struct dt_shm *s, const struct dt_call *call, const void *in,
                              void *out);
/* The same, but only local rank root gets the result; the others' out is not used. divisor: of
 * DT_AVG's sum, or 1 if the average is completed later. */
dt_result_t dt_shm_reduce(struct dt_shm *s, const struct dt_call *call, const void *in, void *out,
                          uint32_t root, int divisor);
/* An all-reduce in two halves; in between, the caller does work that the other ranks need not wait
 * for. The first half publishes this rank's data and does not wait. The second half waits for all
 * ranks' data and reduces them. dt_shm_can_publish_small says whether this is possible: the data
 * are small, and the round can begin without waiting. Both halves read "in". out: NULL, or the
 * buffer for the result. */
bool dt_shm_can_publish_small(const struct dt_shm *s, size_t bytes);
void dt_shm_publish_small(struct dt_shm *s, const struct dt_call *call, const void *in);
dt_result_t dt_shm_all_reduce_small(struct dt_shm *s, const struct dt_call *call, const void *in,
                                    void *out, int divisor);
/* Broadcasts local rank root's buffer. Part of a call that has begun. bytes may be 0: then all
 * ranks wait for root. When it returns, the buffer is root's own again. */
dt_result_t dt_shm_broadcast(struct dt_shm *s, void *buf, size_t bytes, uint32_t root);

#endif
