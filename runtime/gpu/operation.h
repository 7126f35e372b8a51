/* One public call on a communicator as data, so that it can be executed at once or later: the
 * arguments, and what its kind does with them. It is defined here, below api/, because it carries
 * the state of a call on GPU memory. */
#ifndef DT_GPU_OPERATION_H
#define DT_GPU_OPERATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/blocks.h"
#include "runtime/dtrun.h"
#include "runtime/gpu/device/memory.h"
#include "runtime/gpu/device/order.h"
#include "runtime/wire/callkind.h"

struct dt_comm;
struct dt_unlaunched;

struct dt_operation {
    const struct dt_operation_kind *kind;
    dt_comm_t *comm;
    const void *in;
    void *out;
    size_t count;
    struct dt_blocks given; /* of in */
    struct dt_blocks taken; /* of out */
    dt_dtype_t dtype;
    dt_op_t op;
    int root;
    const dt_all_reduce_options_t *options; /* as the program gave them; NULL: none */

    /* set by the check */
    struct dt_buffer_pair touched; /* not set for host memory */
    enum dt_memory memory;
    dt_all_reduce_options_t how; /* the options with all defaults filled in; size 0: no options */
    uint64_t buffers; /* stands for the buffers of a bucket (reduceoptions.h); 0: one buffer */

    /* Used by calls on GPU memory, from the request until the call has been executed. */
    struct dt_gpu_order order;
    struct dt_gpu_gate *gate; /* holds the stream of an enqueued call; NULL: not enqueued */
    struct dt_direct *direct; /* the enqueuing thread launches it; NULL: the other one does */
    bool ordered;             /* it has its place in the order that the program has promised */
    struct dt_unlaunched *unlaunched; /* of its task, to which its launch is left; NULL: none */
    struct dt_gpu_copies *copies; /* for an enqueued call between two ranks; NULL: not made yet */
    struct dt_inflight *inflight; /* counts the enqueued calls of its view; NULL: no view */
};

struct dt_operation_kind {
    const char *name; /* of the public call, for error messages */
    enum dt_call_kind call;
    /* Checks the arguments of this rank, resolves DT_IN_PLACE, and drops counts that the rank does
     * not need. On failure dt_last_error says what is wrong. NULL: there is nothing to check. */
    dt_result_t (*check)(struct dt_operation *o, int rank, int size);
    /* NULL: the call is a send or a receive. Then root is the peer, and out the buffer. */
    dt_result_t (*make)(struct dt_comm *c, const struct dt_operation *o);
};

static inline bool dt_operation_is_p2p(const struct dt_operation *o)
{
    return !o->kind->make;
}

#endif
