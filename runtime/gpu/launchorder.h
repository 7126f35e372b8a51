/* The order in which a process puts the calls of several communicators on the GPU. It must be the
 * same on all ranks, since GPUs that get calls in different orders may wait for each other for
 * ever: kernels of NCCL, and streams of ranks that share a GPU, if they share a hardware queue.
 *
 * When all ranks have come to a call, each proposes a stamp above all that it knows. The highest
 * proposal becomes the call's stamp. A call is launched once no other call here has a lower stamp
 * or might still get one. Ranks wait for nothing else before they propose, so this always ends.
 *
 * A program may promise an order of its own instead. Then its thread launches calls on streams, and
 * waits before that for earlier calls which it has left to other threads.
 *
 * For any thread. Does no input or output. */
#ifndef DT_GPU_LAUNCHORDER_H
#define DT_GPU_LAUNCHORDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct dt_launchorder_call { /* one per call; all zero before */
    uint64_t comm; /* the number of its communicator; for equal stamps the lower one goes first */
    int64_t stamp; /* first proposed, then agreed on; 0: the call has no place in the order */
    struct dt_launchorder_call *next;
};

void dt_launchorder_propose(struct dt_launchorder_call *l, uint64_t comm);
/* stamp: the highest proposal of all ranks. */
void dt_launchorder_agree(struct dt_launchorder_call *l, int64_t stamp);
/* Whether it is the turn of a call whose stamp is agreed on. */
bool dt_launchorder_may(const struct dt_launchorder_call *l);
/* The call has been launched, or never will be. Accepts a call that was never proposed or has
 * ended. */
void dt_launchorder_end(struct dt_launchorder_call *l);

/* ---- calls that are left to other threads ---- */

struct dt_unlaunched { /* one per task; all zero at first */
    _Atomic bool counts;
};

/* The call is submitted. */
void dt_unlaunched_begin(struct dt_unlaunched *u);
/* It has been launched, or will not be. Accepts NULL, and calls that are not counted any more. */
void dt_unlaunched_end(struct dt_unlaunched *u);
bool dt_unlaunched_any(void);

#endif
