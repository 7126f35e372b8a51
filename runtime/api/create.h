/* Creates, connects and frees a communicator. */
#ifndef DT_API_CREATE_H
#define DT_API_CREATE_H

#include "runtime/comm/comm.h"

/* Creates the communicator "id" of n ranks of the job, each of which calls this. ranks NULL: all
 * ranks. w must outlive c. Does not communicate with other hosts. Whether it or the following calls
 * succeed or fail, dt_comm_release must be called. */
dt_result_t dt_comm_create(struct dt_comm *c, struct dt_world *w, uint64_t id,
                           const uint32_t *ranks, uint32_t n);
/* Makes the first call on c, which errors and the flight recorder name as this kind. It returns
 * when all ranks have made it. */
dt_result_t dt_comm_join(struct dt_comm *c, enum dt_call_kind kind);
/* Changes the thresholds by which calls on c choose their algorithms. All ranks call it at the same
 * point. The caller holds the slots' mutex, because threads that make channels read the thresholds.
 */
void dt_comm_add_tuning(struct dt_comm *c, const struct dt_tuning_table *table);
/* Waits until all ranks leave. Does not wait if the communicator has failed. */
dt_result_t dt_comm_leave(struct dt_comm *c);
/* Frees c without telling the other ranks. No other thread may use c any more. */
void dt_comm_release(struct dt_comm *c);

#endif
