/* Streams' views of communicators: handles (dt_comm_t) through which calls are enqueued on a stream
 * of the program's.
 *
 * An enqueued call is made as one in the background is (p2p/async.h), by the thread of its
 * communicator, which waits, watches and fails as for any call. Before it comes what the stream has
 * to do so far, and the stream is held by a gate (gpu/gate.h) until it has been made. The view
 * keeps its request, and tells what came of it in a later call. */
#ifndef DT_API_VIEW_H
#define DT_API_VIEW_H

#include "runtime/api/operation.h"
#include "runtime/dtrun.h"

/* What the public calls do with their operation, whose handle may be that of a view: make it, or
 * hand it in; or enqueue it. */
dt_result_t dt_view_make(struct dt_operation *o);
dt_result_t dt_view_start(struct dt_operation *o, dt_request_t *request);

/* dt_comm_free of one. */
dt_result_t dt_view_free(dt_comm_t *handle);
/* Frees all, when no communicator has any call under way. */
void dt_view_free_all(void);

#endif
