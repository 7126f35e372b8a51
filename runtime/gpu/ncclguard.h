/* Counts the threads that are inside NCCL's functions with a communicator, so that the communicator
 * is not freed under one of them: ncclCommAbort ends the communicator's kernels and then frees it,
 * whatever other threads do. For any thread. Does no input or output. */
#ifndef DT_GPU_NCCLGUARD_H
#define DT_GPU_NCCLGUARD_H

#include <stdbool.h>

struct dt_ncclguard;

/* Returns NULL if memory runs out. The caller holds the guard. The last holder's drop frees it. */
struct dt_ncclguard *dt_ncclguard_new(void);
void dt_ncclguard_hold(struct dt_ncclguard *g);
void dt_ncclguard_drop(struct dt_ncclguard *g); /* accepts NULL */

/* Returns true if the communicator can be used until dt_ncclguard_leave, false if the guard is
 * shut. */
bool dt_ncclguard_enter(struct dt_ncclguard *g);
void dt_ncclguard_leave(struct dt_ncclguard *g);
/* From now on no thread can enter. Does not wait for those inside. */
void dt_ncclguard_shut(struct dt_ncclguard *g);
/* After dt_ncclguard_shut: whether all threads have left. */
bool dt_ncclguard_is_empty(struct dt_ncclguard *g);

#endif
