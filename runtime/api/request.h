/* The calls that a program has asked for and not yet waited for: what stands behind a dt_request_t.
 *
 * A request is a place in a table and how often that place has been used, so that one that was
 * waited for is known as such, and not taken for another. Any thread may use these functions; two
 * may not wait for one request. */
#ifndef DT_API_REQUEST_H
#define DT_API_REQUEST_H

#include "runtime/api/operation.h"
#include "runtime/dtrun.h"

/* "dt_iall_reduce", of a dt_all_reduce. Returns name. */
enum { DT_REQUEST_NAME = 32 };
const char *dt_request_name(const struct dt_operation *o, char name[DT_REQUEST_NAME]);

/* Checks an operation and hands it in for the thread of the communicator, or of the way, to make.
 * On failure *request is 0. */
dt_result_t dt_request_start(struct dt_operation *o, dt_request_t *request);
/* The same for one that has been checked, and has its order if it needs one, on a communicator of
 * so many ranks. name: of the public call. */
dt_result_t dt_request_hand_in(const char *name, const struct dt_operation *o, int size,
                               dt_request_t *request);

#endif
