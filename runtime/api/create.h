/* How a communicator comes to be, and how it ends. */
#ifndef DT_API_CREATE_H
#define DT_API_CREATE_H

#include "runtime/comm/comm.h"

/* Begins a communicator, named id, of n ranks of the job, which all call this: gives it all that
 * this host has to give. ranks NULL: all of them. w outlives it. Whatever it returns, and whatever
 * the next two do, dt_comm_release ends it. */
dt_result_t dt_comm_create(struct dt_comm *c, struct dt_world *w, uint64_t id,
                           const uint32_t *ranks, uint32_t n);
/* Connects the ranks, and returns when they have met in their first call, which is told as kind. */
dt_result_t dt_comm_join(struct dt_comm *c, enum dt_call_kind kind);
/* Changes the thresholds by which c's calls choose their way; at once on all ranks, and for threads
 * that keep it in its slot, too. */
void dt_comm_add_tuning(struct dt_comm *c, const struct dt_tuning_table *table);
/* The last meeting of all ranks; nobody waits where the communicator has failed. */
dt_result_t dt_comm_leave(struct dt_comm *c);
/* Frees what creating took, without a word to the others; no thread sees c any more. */
void dt_comm_release(struct dt_comm *c);

#endif
