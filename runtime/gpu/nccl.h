/* Calls on GPU memory that NCCL makes: among all ranks if each has a GPU of its own, or among the
 * leaders of ranks that share GPUs (shared.h). */
#ifndef DT_GPU_NCCL_H
#define DT_GPU_NCCL_H

#include <stdbool.h>

#include "runtime/dtrun.h"
#include "runtime/gpu/nvidia/abi_cuda.h"

struct dt_comm;
struct dt_gpu_arrival;
struct dt_launchorder_call;
struct dt_operation;

/* Makes an operation that dt_ncclcalls_serves accepts, and whose order has been taken (order.h).
 * The first one connects all ranks. After a failure NCCL's communicator has been aborted. */
dt_result_t dt_nccl_make(struct dt_comm *c, const struct dt_operation *o);

/* The parts of dt_nccl_make, for calls of ranks that share GPUs.
 *
 * Whether calls must agree on their place among those of other communicators (dt_nccl_agree). */
bool dt_nccl_needs_agreement(const struct dt_comm *c);
/* dt_nccl_agree is collective and comes before the call: it gives the call a place among the calls
 * of all communicators, which the call keeps until dt_launchorder_end. dt_nccl_await_turn waits for
 * that place, inside the call. */
dt_result_t dt_nccl_agree(struct dt_comm *c, const struct dt_operation *o,
                          struct dt_launchorder_call *launch);
dt_result_t dt_nccl_await_turn(struct dt_comm *c, const struct dt_launchorder_call *launch);
/* Inside a call: dt_nccl_queue puts the operation, for NCCL's ranks, on the stream, and waits until
 * NCCL has launched it; a describes the whole call. dt_nccl_check returns an error if NCCL has
 * failed since. */
dt_result_t dt_nccl_queue(struct dt_comm *c, const struct dt_operation *o, CUstream stream,
                          struct dt_gpu_arrival *a);
dt_result_t dt_nccl_check(struct dt_comm *c);

#endif
