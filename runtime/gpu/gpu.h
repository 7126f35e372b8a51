/* Calls of a communicator on GPU memory: the path that they take, and its state. */
#ifndef DT_GPU_GPU_H
#define DT_GPU_GPU_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/diag/recorder.h"
#include "runtime/dtrun.h"
#include "runtime/gpu/device/copies.h"
#include "runtime/gpu/direct.h"
#include "runtime/gpu/ncclcomm.h"
#include "runtime/gpu/offer.h"
#include "runtime/gpu/shared.h"

struct dt_comm;
struct dt_gpu_order;
struct dt_operation;

struct dt_gpu { /* one per communicator; all zero at first */
    enum dt_gpu_path path;
    bool program_order;           /* all ranks have promised the order of their calls */
    char no_nccl[DT_GPU_WHY];     /* if this rank cannot use NCCL, the reason */
    struct dt_gpu_copies *copies; /* those of the current staged call */
    struct dt_gpu_copies *all_copies;
    struct dt_ncclcomm nccl;
    struct dt_directs directs;
    struct dt_shared shared;
};

/* Collective on parent, when it is split: makes child's NCCL communicator by a split of parent's,
 * if NCCL serves parent and all its ranks are ready. child NULL: this rank gets none. Other ranks
 * of parent may have other children, which differ in color. A failure ends parent. */
dt_result_t dt_gpu_split(struct dt_comm *parent, struct dt_comm *child, int color);
/* Makes an operation on GPU memory or managed memory. The operation has been checked and has taken
 * its order. */
dt_result_t dt_gpu_make(struct dt_comm *c, const struct dt_operation *o);
/* Returns DT_ERR_ARG if the path that makes the operation serves another device or context than
 * that of its buffers: its kernels run in the context of the first call, and would end it if they
 * touched memory of another one. The refusal leaves the path as it is: other ranks know nothing. */
dt_result_t dt_gpu_check_place(const struct dt_comm *c, const struct dt_operation *o);
/* Allocates the communicator's GPU state, which is empty until the first call on GPU memory. */
dt_result_t dt_gpu_open(struct dt_comm *c);
void dt_gpu_close(struct dt_comm *c); /* does nothing if dt_gpu_open failed or was not called */

/* Collective: prepares for calls that are enqueued on streams. Chooses the path, and makes
 * whatever later calls on the order's device may need. Made later, while such a call holds a
 * stream, it might wait for that stream. If the communicator already uses another device on some
 * rank, all ranks return DT_ERR_ARG, which is not final. copies: set to those for staged calls. */
dt_result_t dt_gpu_prepare(struct dt_comm *c, const struct dt_gpu_order *order,
                           struct dt_gpu_copies **copies);
/* Whether the thread that enqueues an operation of all ranks may itself hand it to NCCL (direct.h),
 * and in *must, whether it has to, because the program has promised the order. All ranks get the
 * same answer. Any thread may ask once all is prepared. */
bool dt_gpu_goes_direct(const struct dt_comm *c, const struct dt_operation *o, bool *must);
/* Whether an operation of all ranks is staged on this rank, and how much pinned memory that takes.
 * Any thread may ask once all is prepared. */
bool dt_gpu_is_staged(const struct dt_comm *c, const struct dt_operation *o, size_t *bytes);

#endif
