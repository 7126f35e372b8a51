/* Checks an operation (gpu/operation.h) and executes it, at once or in the background. */
#ifndef DT_API_OPERATION_H
#define DT_API_OPERATION_H

#include "runtime/comm/async.h"
#include "runtime/gpu/operation.h"

/* Checks the operation and executes it in this thread. */
dt_result_t dt_operation_make(struct dt_operation *o);

/* For a caller that keeps the operation and submits it later. The first only checks it. The second
 * also records its place in the program's GPU work (gpu/device/order.h). */
dt_result_t dt_operation_check(struct dt_operation *o);
dt_result_t dt_operation_prepare(struct dt_operation *o);
/* Like dt_operation_prepare, but errors name the public call "name". Sets *size to the size of the
 * communicator. */
dt_result_t dt_operation_prepare_as(struct dt_operation *o, const char *name, int *size);
/* The buffers of a checked operation on GPU memory that its order concerns. */
struct dt_buffer_pair dt_operation_gpu_buffers(const struct dt_operation *o);
/* dt_context_refuse for the operation's own call. Returns r. */
dt_result_t dt_operation_refuse(const struct dt_operation *o, dt_result_t r);
/* Submits a task for the operation, on behalf of the public call "name". The task calls
 * dt_operation_run. */
dt_result_t dt_operation_submit(const char *name, const struct dt_operation *o,
                                struct dt_task *task);
dt_result_t dt_operation_run(struct dt_operation *o, struct dt_task *task);

#endif
