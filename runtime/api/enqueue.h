/* Enqueues an operation on one of the program's streams: submits it for the thread that executes
 * it, and closes a gate on the stream until then. */
#ifndef DT_API_ENQUEUE_H
#define DT_API_ENQUEUE_H

#include "runtime/api/operation.h"
#include "runtime/dtrun.h"

struct dt_gpu_stream;

/* name is the public call's. On failure *request is 0 and the stream is unchanged. */
dt_result_t dt_enqueue(const char *name, struct dt_operation *o, struct dt_gpu_stream *s,
                       dt_request_t *request);

#endif
