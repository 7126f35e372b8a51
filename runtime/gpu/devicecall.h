/* Shared by all paths of a call on GPU memory. */
#ifndef DT_GPU_DEVICECALL_H
#define DT_GPU_DEVICECALL_H

#include <stdbool.h>

#include "runtime/comm/comm.h"
#include "runtime/gpu/nvidia/abi_cuda.h"
#include "runtime/gpu/operation.h"

/* The call as it must match on all ranks. */
struct dt_call dt_gpu_call(const struct dt_operation *o);
/* Ends c with this rank's failure in a function of the driver. Returns DT_ERR_CUDA. */
dt_result_t dt_gpu_fail(struct dt_comm *c, const char *function, CUresult error);
/* Waits for the event between two calls: see dt_comm_aside. */
dt_result_t dt_gpu_await_event(struct dt_comm *c, CUevent event);
/* Waits until the GPU has done what was queued before the call. Then managed memory counts as host
 * memory. */
dt_result_t dt_gpu_await_order(struct dt_comm *c, const struct dt_gpu_order *order);
/* Waits likewise if a gate other than the call's own (NULL: it has none) is shut. Streams share
 * hardware queues: if a stream of the library waited there for work behind a gate, the copies of
 * the call that opens the gate might stand behind it. */
dt_result_t dt_gpu_await_gates(struct dt_comm *c, const struct dt_gpu_order *order,
                               const struct dt_gpu_gate *own);
/* All ranks of c call this. Rank 0 of c sends the text to dtrun, unless *warned says that it has
 * been in such a call before, on any communicator. */
void dt_gpu_warn_once(struct dt_comm *c, _Atomic bool *warned, const char *text);

#endif
