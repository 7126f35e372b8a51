/* What a public call on a communicator asks for, so that it can be made at once or in the
 * background: its arguments, and how its kind is checked and made. */
#ifndef DT_API_OPERATION_H
#define DT_API_OPERATION_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/blocks.h"
#include "runtime/base/inflight.h"
#include "runtime/comm/async.h"
#include "runtime/comm/comm.h"
#include "runtime/dtrun.h"
#include "runtime/gpu/memory.h"
#include "runtime/gpu/order.h"

struct dt_operation {
    const struct dt_operation_kind *kind;
    dt_comm_t *comm;
    const void *in;
    void *out;
    size_t count;
    struct dt_blocks given; /* of "in" */
    struct dt_blocks taken; /* of out */
    dt_dtype_t dtype;
    dt_op_t op;
    int root;
    const dt_all_reduce_options_t *options; /* the program's; NULL: none */

    /* Set by the check. */
    enum dt_memory memory;
    dt_all_reduce_options_t how; /* size 0: in no special way */

    /* On a GPU's memory: from when it was asked for until it is made. */
    struct dt_gpu_order order;
    struct dt_gpu_gate *gate; /* of the stream on which it was enqueued; NULL: it was not */
    struct dt_direct *direct; /* its launch, by the thread that enqueues it; NULL: by the other */
    struct dt_gpu_copies *copies; /* likewise, between two ranks */
    struct dt_inflight *inflight; /* likewise: the calls of its view; NULL: it has none */
};

struct dt_operation_kind {
    const char *name; /* of the public call, for what goes wrong */
    enum dt_call_kind call;
    /* Says in dt_last_error what of the arguments is wrong, for this rank of so many; resolves
     * DT_IN_PLACE, and drops counts that the rank does not need. NULL: there is nothing to check.
     */
    dt_result_t (*check)(struct dt_operation *o, int rank, int size);
    /* NULL: it is between two ranks, on the way to or from "root", and out is its buffer. */
    dt_result_t (*make)(struct dt_comm *c, const struct dt_operation *o);
};

static inline bool dt_operation_is_between_two(const struct dt_operation *o)
{
    return !o->kind->make;
}

/* Checks and makes it. */
dt_result_t dt_operation_make(struct dt_operation *o);

/* For what keeps one and hands it in itself: checks it; and takes its order, too. */
dt_result_t dt_operation_check(struct dt_operation *o);
dt_result_t dt_operation_prepare(struct dt_operation *o);
/* Of one that has been checked: a buffer that the GPU can reach; NULL: there is none. */
const void *dt_operation_gpu_buffer(const struct dt_operation *o);
/* The same for a call of another name, which is told with what is wrong; size: of the communicator.
 */
dt_result_t dt_operation_prepare_as(struct dt_operation *o, const char *name, int *size);
/* Tells in dt_last_error_info of which call dt_last_error is, which was not made. Returns r. */
dt_result_t dt_operation_refuse(const struct dt_operation *o, dt_result_t r);
/* Hands in a task for it, and makes it when that runs. name: of
 * the public call that does. */
dt_result_t dt_operation_hand_in(const char *name, const struct dt_operation *o,
                                 struct dt_task *task);
dt_result_t dt_operation_run(struct dt_operation *o, struct dt_task *task);

#endif
