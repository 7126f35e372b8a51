/* What brings every rank of a host its own part, in rounds (rounds.h): what alltoall.c is made of.
 */
#ifndef DT_SHM_PAIRWISE_H
#define DT_SHM_PAIRWISE_H

#include "runtime/base/blocks.h"
#include "runtime/shm/segment.h"
#include "runtime/shm/shm.h"

/* Every collective of alltoall.h is this: some spans of "in" go to peers, some of "out" come from
 * them. A round moves as much of each as fits into a window of the giver's staging: that which all
 * its peers look at, or one for each of them. */
struct dt_pairwise {
    struct dt_shm *s;
    const struct dt_call *call;
    const uint8_t *in;
    const struct dt_span *give; /* by peer */
    uint8_t *out;
    const struct dt_span *take; /* likewise */
    bool one_window;
    bool gives; /* anything at all, and so on */
    bool takes;
    int divisor;     /* 0: what is taken is copied; else it is folded */
    uint64_t *word;  /* NULL, or becomes the sum of all ranks' */
    bool overwrites; /* what is taken comes to stand where others would read */

    /* set on the way */
    bool differs;          /* what is given is not what is expected */
    struct dt_place place; /* of "in", which others take from there; or none */
    size_t window;
    size_t longest; /* of everybody's spans */
};

/* A whole call, checked as dt_shm_begin does. Returns DT_ERR_MISMATCH with m->differs on all ranks
 * when what some rank gives is not what the other expects; before anything is taken. */
dt_result_t dt_pairwise(struct dt_pairwise *m);

#endif
