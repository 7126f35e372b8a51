/* Counts the threads that are inside NCCL's functions with a communicator, so that NCCL does not
 * free the communicator under one of them. For any thread; does no input or output.
 *
 * ncclCommAbort ends the communicator's kernels and then frees it, without regard to other threads.
 */
#ifndef DT_GPU_NCCLGUARD_H
#define DT_GPU_NCCLGUARD_H

#include <stdbool.h>

struct dt_ncclguard;

/* NULL: there is no memory. The guard has one holder, and is freed by the last one. */
struct dt_ncclguard *dt_ncclguard_new(void);
void dt_ncclguard_hold(struct dt_ncclguard *g);
void dt_ncclguard_drop(struct dt_ncclguard *g); /* accepts NULL */

/* True: the communicator can be used until dt_ncclguard_leave. False: the guard is shut. */
bool dt_ncclguard_enter(struct dt_ncclguard *g);
void dt_ncclguard_leave(struct dt_ncclguard *g);
/* No thread enters any more. Those inside are not waited for. */
void dt_ncclguard_shut(struct dt_ncclguard *g);
/* After dt_ncclguard_shut: whether all threads have left. */
bool dt_ncclguard_is_empty(struct dt_ncclguard *g);

#endif
