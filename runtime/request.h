/* The calls that a program has asked for and not yet waited for: what stands behind a dt_request_t.
 *
 * A request is a place in a table and how often that place has been used, so that one that was
 * waited for is known as such, and not taken for another. Any thread may use these functions; two
 * may not wait for one request. */
#ifndef DT_RUNTIME_REQUEST_H
#define DT_RUNTIME_REQUEST_H

#include "runtime/async.h"
#include "runtime/dtrun.h"

struct dt_request_call { /* what was asked for */
    dt_result_t (*make)(const struct dt_request_call *call);
    dt_comm_t *comm;
    const void *in;
    void *out;
    size_t count;
    dt_dtype_t dtype;
    dt_op_t op;
    int root;
};

/* Hands the call in for the communicator's thread to make. On failure *request is 0. */
dt_result_t dt_request_start(const char *name, const struct dt_request_call *call,
                             dt_request_t *request);

#endif
