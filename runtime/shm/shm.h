/* Collectives among the ranks of one host, in memory that their agent gave them.
 *
 * All ranks of the host make the same calls in the same order. A call is a series of rounds. In
 * each a rank uses the next part of its staging area, and writes it only after all ranks have left
 * the round before the last one (rounds.h): so a round costs no more synchronisations than its data
 * flow needs. Every wait ends when something stops the host (hostshm.h), with that reason as its
 * result.
 *
 * If the buffers of all ranks are in segments (segment.h), nothing is staged: the line that a rank
 * writes in the first round says where its buffer is, and other ranks read the data there. All
 * ranks decide this alike, from what all have written. */
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
    const uint32_t *ranks; /* by local rank, to name them in coll_error */
    uint64_t round;
    uint64_t signature; /* of this rank's call, as its line has it: see call_match.c */
    size_t at;          /* in every rank's staging: where the bytes of this round stand */
    size_t staged;      /* bytes of this round, where these keep their place; else 0 */
    size_t few;         /* bytes, up to which those of a round keep their place there */
    size_t next;        /* where the ring behind those places goes on; 0: it was never used */
    uint64_t settled;   /* everybody is known to have progressed this far */
    const struct dt_tuning *tuning; /* NULL: what is built in */
    bool crowded;                   /* there are fewer CPUs than ranks */
    bool packed;                    /* every CPU has two ranks or more, if they are spread evenly */
    uint32_t cpu;                   /* 1 + the one that this rank has shown to be on, or 0 */
    uint64_t spins;                 /* what a wait may spend before it sleeps */
    uint64_t yields;
    enum dt_cma_reach reach; /* the memory of those that a call needs */
    size_t small;            /* bytes, up to which everybody folds all of a reduction */
    size_t least_direct;     /* bytes from which two ranks try to */
    uint32_t pipes;          /* which of their two sets (hostshm.h) */
    struct dt_coll_error *coll_error;
    struct dt_ring *ring;  /* the flight recorder's, or NULL */
    const char *algorithm; /* for the flight recorder */
};

/* Completes a structure whose map, comm, me, n, ranks and coll_error are set. cpus: a bit for each
 * that this process may use, where cpus[0] has the first 64. */
void dt_shm_start(struct dt_shm *s, const uint64_t cpus[DT_HOSTSHM_CPUS / 64]);
/* After the first meeting of all, or when tuning has changed: decides how to wait, by the CPUs that
 * there are for everybody. */
void dt_shm_met(struct dt_shm *s);

/* Waits for every rank of the host to make this very call. */
dt_result_t dt_shm_begin(struct dt_shm *s, const struct dt_call *call);
/* Likewise; *word becomes the sum of every rank's. */
dt_result_t dt_shm_begin_adding(struct dt_shm *s, const struct dt_call *call, uint64_t *word);

/* A whole all-reduce, checked as dt_shm_begin does. in may be out. */
dt_result_t dt_shm_all_reduce(struct dt_shm *s, const struct dt_call *call, const void *in,
                              void *out);
/* The same, but only local rank root has the result; out of the others is not used. divisor: of
 * DT_AVG's sum, or 1 where it is still on its way. */
dt_result_t dt_shm_reduce(struct dt_shm *s, const struct dt_call *call, const void *in, void *out,
                          uint32_t root, int divisor);
/* An all-reduce in two halves, between which the caller does what others need not wait for: shows
 * this rank's data, and waits for nobody; waits for those of all, and folds them. Where
 * dt_shm_shows_few: bytes are few, and nothing has to be waited for or told before. in is read in
 * both. out: NULL, or where the result is to go. */
bool dt_shm_shows_few(const struct dt_shm *s, size_t bytes);
void dt_shm_show_few(struct dt_shm *s, const struct dt_call *call, const void *in);
dt_result_t dt_shm_fold_few(struct dt_shm *s, const struct dt_call *call, const void *in, void *out,
                            int divisor);
/* Copies local rank root's buffer to all others. Part of a call that has begun; bytes may be 0:
 * then everybody waits for root. When it returns the buffer is root's own again. */
dt_result_t dt_shm_share(struct dt_shm *s, void *buf, size_t bytes, uint32_t root);

#endif
