/* In which order a process launches the kernels of several communicators: in the same one as all
 * other ranks, for GPUs on which they come in different orders may wait for each other for ever.
 *
 * When all ranks of a call have come to it, each proposes a stamp that is higher than all it knows,
 * and the highest of these is the call's. A call is launched when no other one here has a lower
 * stamp or might still get one. As ranks that propose wait for nothing else, this always ends.
 *
 * For any thread; does no input or output. */
#ifndef DT_GPU_LAUNCHORDER_H
#define DT_GPU_LAUNCHORDER_H

#include <stdbool.h>
#include <stdint.h>

struct dt_launch { /* of a call, all zero before */
    uint64_t comm; /* of calls with the same stamp, that of the lower one comes first */
    int64_t stamp; /* proposed, then agreed upon; 0: the call has no place in the order */
    struct dt_launch *next;
};

void dt_launch_propose(struct dt_launch *l, uint64_t comm);
/* The highest proposal of all ranks. */
void dt_launch_agree(struct dt_launch *l, int64_t stamp);
/* Whether it is this one's turn, once it has been agreed upon. */
bool dt_launch_may(const struct dt_launch *l);
/* It is launched, or never will be. Accepts one that was not proposed, or has ended. */
void dt_launch_end(struct dt_launch *l);

#endif
