/* The calls that a program has asked for and not yet waited for: what stands behind a dt_request_t.
 *
 * A request is a place in a table and how often that place has been used, so that one that was
 * waited for is known as such, and not taken for another. Any thread may use these functions; two
 * may not wait for one request. */
#ifndef DT_API_REQUEST_H
#define DT_API_REQUEST_H

#include "runtime/api/operation.h"
#include "runtime/dtrun.h"

/* Checks an operation and hands it in for the thread of the communicator, or of the way, to make.
 * On failure *request is 0. */
dt_result_t dt_request_start(struct dt_operation *o, dt_request_t *request);

#endif
