/* Waiting for the GPU inside of a call, which what stops the communicator ends: a peer's death, an
 * abort, a limit. Nothing here blocks in the driver. */
#ifndef DT_GPU_DEVICE_WAIT_H
#define DT_GPU_DEVICE_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/diag/recorder.h"
#include "runtime/dtrun.h"
#include "runtime/gpu/nvidia/abi_cuda.h"

struct dt_comm;
struct dt_coll_error;

/* DT_OK once the event is done. Else t says what went wrong, until this thread's next failure here.
 * until_ns: DT_ERR_TIMEOUT from then on, by dt_clock_ns; 0: the agent watches over the limit. */
dt_result_t dt_gpu_await(const struct dt_comm *c, struct dt_coll_error *t, CUevent done,
                         uint64_t until_ns);
/* Makes a failure of this rank the coll_error of its call, likewise. */
dt_result_t dt_gpu_trouble(const struct dt_comm *c, struct dt_coll_error *t, const char *function,
                           CUresult error);
/* Waits a moment for what a failed call has left on the stream. False: it is still there. */
bool dt_gpu_settles(CUstream stream);

/* For loops that wait for something else: yields, and sleeps once the wait lasts. */
void dt_gpu_pause(unsigned turn);

/* A call in which other ranks' GPUs wait for one that has not come to it. dtrun is told whose that
 * is once the wait lasts. */
struct dt_gpu_arrival {
    CUevent begun; /* when the GPU has done all that comes first */
    enum dt_call_kind kind;
    bool late; /* as dtrun knows it */
    bool arrived;
};

/* The end of each turn of a wait inside a call: DT_OK after a pause, or c->coll_error once c has
 * been stopped. a NULL: nobody else's GPU waits for this rank's. */
dt_result_t dt_gpu_wait_on(struct dt_comm *c, struct dt_gpu_arrival *a, unsigned turn);

#endif
