/* Waiting for the GPU inside a call. Whatever stops the communicator (a peer's death, an abort, a
 * timeout) ends the wait. Nothing here blocks in the driver. */
#ifndef DT_GPU_DEVICE_WAIT_H
#define DT_GPU_DEVICE_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/diag/recorder.h"
#include "runtime/dtrun.h"
#include "runtime/gpu/nvidia/abi_cuda.h"

struct dt_comm;
struct dt_coll_error;

/* Returns DT_OK once the event is done. After a failure t says what went wrong; its text is valid
 * until this thread's next failure here. From until_ns (by dt_clock_ns) on it returns
 * DT_ERR_TIMEOUT; with 0 the agent watches the timeout. */
dt_result_t dt_gpu_await(const struct dt_comm *c, struct dt_coll_error *t, CUevent done,
                         uint64_t until_ns);
/* Stores in t that a function of CUDA failed on this rank. The text is valid as long as above.
 * Returns t's code. */
dt_result_t dt_gpu_coll_error(const struct dt_comm *c, struct dt_coll_error *t,
                              const char *function, CUresult error);
/* Waits a moment for work that a failed call has left on the stream. Returns false if it is still
 * there. */
bool dt_gpu_settles(CUstream stream);

/* For loops that wait for something else: yields first, and sleeps once the wait lasts. */
void dt_gpu_pause(unsigned turn);
/* Such a loop, which asks `over` in each turn. Returns false after ms. */
bool dt_gpu_wait_at_most(unsigned ms, bool (*over)(void *arg), void *arg);

/* Why GPUs of other ranks may wait for this rank's in a call: it has not finished the work before
 * the call, or NCCL has not launched the call there. If that takes long, dtrun is told. */
struct dt_gpu_arrival {
    CUevent begun; /* recorded once the GPU has finished the work before the call */
    enum dt_call_kind kind;
    uint64_t since_ns;      /* when the wait began, set by its first turn */
    bool launching;         /* NCCL has not launched the call yet */
    enum dt_call_kind told; /* what dtrun was told that the rank is in; 0: nothing yet */
    bool arrived;
};

/* Tells dtrun, before NCCL is asked to launch the call, that the rank is in the launch: if NCCL's
 * calls block, it may never return. */
void dt_gpu_launch_begins(struct dt_comm *c, struct dt_gpu_arrival *a);
/* Tells dtrun that NCCL has launched the call: a full queue of the GPU may block the rank next. */
void dt_gpu_launch_ends(struct dt_comm *c, struct dt_gpu_arrival *a);

/* Ends each turn of a wait inside a call. Returns DT_OK after a pause, or c->coll_error once c has
 * been stopped. a: NULL if no other rank's GPU waits for this rank's. */
dt_result_t dt_gpu_wait_on(struct dt_comm *c, struct dt_gpu_arrival *a, unsigned turn);

#endif
