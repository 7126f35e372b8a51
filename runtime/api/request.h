/* The nonblocking calls that a program has made and not yet waited for: what a dt_request_t stands
 * for.
 *
 * A request names an entry of a table and the number of times that the entry has been used. So a
 * request that was waited for is recognised, and is not taken for a newer one. Any thread may use
 * these functions, but only one thread at a time may wait for a request. */
#ifndef DT_API_REQUEST_H
#define DT_API_REQUEST_H

#include "runtime/api/operation.h"
#include "runtime/dtrun.h"

/* Turns dt_all_reduce into "dt_iall_reduce", and so on. Returns name. */
enum { DT_REQUEST_NAME = 32 };
const char *dt_request_name(const struct dt_operation *o, char name[DT_REQUEST_NAME]);

/* Checks an operation and submits it for the thread of the communicator or channel. On failure
 * *request is 0. */
dt_result_t dt_request_start(struct dt_operation *o, dt_request_t *request);
/* The same for an operation that was checked before and, if it uses GPU memory, has its order.
 * size: of the communicator. name is the public call's. */
dt_result_t dt_request_submit(const char *name, const struct dt_operation *o, int size,
                              dt_request_t *request);
/* Does the same in two steps. Only the first can run out of memory, unless the operation has
 * counts. Between them the request can also be released, as one that is 0 can. */
dt_result_t dt_request_reserve(const char *name, dt_request_t *request);
dt_result_t dt_request_submit_reserved(const char *name, const struct dt_operation *o, int size,
                                       dt_request_t *request);
void dt_request_release(dt_request_t *request);

#endif
