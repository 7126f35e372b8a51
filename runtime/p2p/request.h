/* The calls that a program has asked for and not yet waited for: what stands behind a dt_request_t.
 *
 * A request is a place in a table and how often that place has been used, so that one that was
 * waited for is known as such, and not taken for another. Any thread may use these functions; two
 * may not wait for one request. */
#ifndef DT_P2P_REQUEST_H
#define DT_P2P_REQUEST_H

#include "runtime/api/operation.h"
#include "runtime/dtrun.h"

/* Hands in an operation that has been checked, on a communicator of so many ranks, and keeps what
 * of it belongs to the program no longer than the call lasts. On failure *request is 0. */
dt_result_t dt_request_start(const char *name, const struct dt_operation *o, int size,
                             dt_request_t *request);

#endif
