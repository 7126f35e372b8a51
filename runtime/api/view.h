/* Views: handles (dt_comm_t) through which calls on a communicator are enqueued on one of the
 * program's streams.
 *
 * The communicator's thread executes an enqueued call like a nonblocking one (comm/async.h), with
 * the same waits, limits and failures. The call follows the work that is already queued on the
 * stream, and a gate (gpu/device/gate.h) holds the stream until the call has been executed. The
 * view keeps the request and reports its failure in a later call. */
#ifndef DT_API_VIEW_H
#define DT_API_VIEW_H

#include "runtime/api/operation.h"
#include "runtime/dtrun.h"

/* Every public call passes its operation to one of these. The handle may be a view's: then the
 * operation is enqueued. Otherwise it is executed, or submitted. */
dt_result_t dt_view_make(struct dt_operation *o);
dt_result_t dt_view_start(struct dt_operation *o, dt_request_t *request);

/* dt_comm_free of a view. */
dt_result_t dt_view_free(dt_comm_t *handle);
/* Frees all views. No call may be under way on any communicator. */
void dt_view_free_all(void);

#endif
