/* Calls of a communicator on GPU memory: the path that they take, and its state. */
#ifndef DT_GPU_GPU_H
#define DT_GPU_GPU_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/diag/recorder.h"
#include "runtime/dtrun.h"
#include "runtime/gpu/device/copies.h"
#include "runtime/gpu/direct.h"
#include "runtime/gpu/nccl.h"
#include "runtime/gpu/offer.h"
#include "runtime/gpu/shared.h"

struct dt_comm;
struct dt_gpu_order;
struct dt_operation;

struct dt_gpu { /* of a communicator; all zero at first */
    enum dt_gpu_path path;
    const char *no_nccl;          /* why this rank cannot use NCCL, if it cannot */
    struct dt_gpu_copies *copies; /* of staging, in the context of the call that is made */
    struct dt_gpu_copies *all_copies;
    struct dt_nccl nccl;
    struct dt_directs directs;
    struct dt_shared shared;
};

/* Makes an operation on GPU memory, or on managed memory, that has been checked and has taken its
 * order. */
dt_result_t dt_gpu_make(struct dt_comm *c, const struct dt_operation *o);
/* Allocates the communicator's GPU state, which is empty until the first call on GPU memory. */
dt_result_t dt_gpu_open(struct dt_comm *c);
void dt_gpu_close(struct dt_comm *c); /* does nothing if dt_gpu_open failed or was not called */

/* For calls that are enqueued on streams. Collective: chooses the path, and makes all that calls on
 * memory of the order's device may need: to make it while they hold a stream might wait for that
 * stream. DT_ERR_ARG, on all ranks alike and not final: on one of them the communicator uses
 * another device already. copies: those of calls by staging. */
dt_result_t dt_gpu_prepare(struct dt_comm *c, const struct dt_gpu_order *order,
                           struct dt_gpu_copies **copies);
/* Whether the thread that enqueues an operation of all ranks may hand it to NCCL itself (direct.h).
 * The same on all ranks, and for any thread, once all is prepared. */
bool dt_gpu_goes_direct(const struct dt_comm *c, const struct dt_operation *o);
/* Whether an operation of all ranks goes by pinned memory on this one, and how much. For any
 * thread, once all is prepared. */
bool dt_gpu_is_staged(const struct dt_comm *c, const struct dt_operation *o, size_t *bytes);

#endif
