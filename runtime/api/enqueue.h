/* How an operation comes to be enqueued on a stream of the program's: it is handed in for the
 * thread that makes it, and the stream held by a gate until then. */
#ifndef DT_API_ENQUEUE_H
#define DT_API_ENQUEUE_H

#include "runtime/api/operation.h"
#include "runtime/dtrun.h"

struct dt_gpu_stream;

/* name: of the public call. On failure *request is 0 and the stream as it was. */
dt_result_t dt_enqueue(const char *name, struct dt_operation *o, struct dt_gpu_stream *s,
                       dt_request_t *request);

#endif
