/* What keeps a stream of the program's from going on until a call has been made that another thread
 * makes: the stream waits for a word in host memory, which that thread stores. No event can do
 * this, for a stream waits only for what has been queued before it.
 *
 * While a gate is shut, CUDA's calls that wait for the whole device (cuMemFree, cuMemFreeHost) wait
 * for that gate, too: the thread that is to open it must not make them. A driver whose queue is
 * full of what the program has put behind a gate may make every thread wait. So a thread of its own
 * watches over the gates, which asks the driver nothing: once a communicator has been stopped (by a
 * limit, a death, an abort), its streams may go on, wherever the thread is that makes its calls.
 *
 * For any thread. */
#ifndef DT_GPU_DEVICE_GATE_H
#define DT_GPU_DEVICE_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/gpu/nvidia/abi_cuda.h"

struct dt_comm;
struct dt_gpu_gate;

/* Makes gates, in whatever context is current, and the thread. CUDA_ERROR_OUT_OF_MEMORY: there can
 * be none. */
CUresult dt_gpu_gates_begin(void);
/* Makes the thread, if there is none. False: there can be none. */
bool dt_gpu_watch_begin(void);
/* All are open: ends the thread. */
void dt_gpu_gates_end(void);
/* What is queued on the stream from now on waits until the gate is open. The communicator stays for
 * so long. */
CUresult dt_gpu_gate_shut(struct dt_gpu_gate **gate, CUstream stream, const struct dt_comm *c);
/* What lets streams go on that no gate holds: of a communicator, all zero at first. */
struct dt_gpu_watched {
    struct dt_comm *comm;
    void (*stuck)(struct dt_comm *c); /* must not wait, nor ask the driver anything */
    struct dt_gpu_watched *next;
    uint32_t calls; /* that are not over */
    uint32_t looks; /* since it was stopped */
};

/* From a call's beginning to its end: the communicator's thread is woken for it within a moment,
 * if nobody has done so (comm/async.h); and stuck is called once when the communicator has been
 * stopped for a while, and calls are still not over. */
void dt_gpu_watch(struct dt_gpu_watched *w);
void dt_gpu_unwatch(struct dt_gpu_watched *w);
/* The stream may go on, and the gate is another stream's from now on. Accepts NULL. */
void dt_gpu_gate_open(struct dt_gpu_gate *gate);

#endif
