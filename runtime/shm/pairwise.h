/* The common algorithm of alltoall.h's collectives: it gives each rank of a host its blocks, in
 * rounds (rounds.h). */
#ifndef DT_SHM_PAIRWISE_H
#define DT_SHM_PAIRWISE_H

#include "runtime/base/blocks.h"
#include "runtime/shm/segment.h"
#include "runtime/shm/shm.h"

/* Each collective gives some ranges of "in" to peers and takes some ranges of out from them. A
 * round moves as much of each as fits into a window of the giver's staging area: one window that
 * all peers read, or one for each peer. */
struct dt_pairwise {
    struct dt_shm *s;
    const struct dt_call *call;
    const uint8_t *in;
    const struct dt_range *give; /* by peer */
    uint8_t *out;
    const struct dt_range *take; /* likewise */
    bool one_window;
    bool gives; /* whether there are such ranges at all */
    bool takes;
    int divisor;     /* 0: data that are taken are copied; else they are reduced */
    uint64_t *word;  /* NULL; or becomes the sum over all ranks */
    bool overwrites; /* data that are taken overwrite data that others read */

    /* the algorithm sets these */
    bool differs;          /* a rank gives another count than its peer expects */
    struct dt_place place; /* of "in", if others copy from there; else none */
    size_t window;
    size_t longest; /* of all ranks' ranges */
};

/* A whole call, checked like dt_shm_begin. If a rank gives another count than its peer expects, all
 * ranks return DT_ERR_MISMATCH with m->differs, before any data are copied. */
dt_result_t dt_pairwise(struct dt_pairwise *m);

#endif
