/* Holds a stream of the program until another thread has made a call: the stream waits for a word
 * in host memory, which that thread stores. An event cannot do this, since a stream waits only for
 * work that was queued before the wait.
 *
 * While a gate is shut, CUDA's calls that wait for the whole device (cuMemFree, cuMemFreeHost, and
 * see provision.h) also wait for that gate, so the thread that will open it must not make them. If
 * the program has queued so much behind a gate that the driver's queue is full, the driver may make
 * every thread wait. Therefore a separate thread, which never calls the driver, watches the gates.
 * Once a communicator has been stopped (by a timeout, a death or an abort), this thread lets its
 * streams go on, wherever the thread that makes its calls may be waiting.
 *
 * The word is in memory that is pinned in the stream's context, so it is there for as long as the
 * stream.
 *
 * For any thread. */
#ifndef DT_GPU_DEVICE_GATE_H
#define DT_GPU_DEVICE_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/gpu/nvidia/abi_cuda.h"

struct dt_comm;
struct dt_gpu_gate;

/* Makes gates in the current context, which is in this life (life.h), starts the thread, and tries
 * a wait that ends at once, since no attribute of a device says whether its streams can wait.
 * *function names the function that failed. If streams cannot wait, that is "cuStreamWaitValue32",
 * with CUDA_ERROR_NOT_SUPPORTED. Without memory or thread returns DT_CUDA_NO_HOST_MEMORY. */
CUresult dt_gpu_gates_try(CUstream stream, uint64_t life, const char **function);
/* Starts the thread unless it runs. Returns false if that is impossible. */
bool dt_gpu_watch_begin(void);
/* Ends the thread. All gates must be open. */
void dt_gpu_gates_end(void);
/* Work that is queued on the stream from now on waits until the gate is open. The stream's context
 * is current and in this life. The communicator must live until then. Returns an error with the
 * function that failed in *function. */
CUresult dt_gpu_gate_shut(struct dt_gpu_gate **gate, CUstream stream, uint64_t life,
                          const struct dt_comm *c, const char **function);
/* Lets the stream go on and makes the gate available for another stream. Accepts NULL. */
void dt_gpu_gate_open(struct dt_gpu_gate *gate);
/* Whether a gate other than this one (NULL: any gate) is shut. Then work that has been queued on a
 * stream of the program may stand behind that gate. */
bool dt_gpu_gate_another_is_shut(const struct dt_gpu_gate *gate);

/* A communicator's calls that have no gate, which the thread also watches. All zero at first. */
struct dt_gpu_watched {
    struct dt_comm *comm;
    void (*stuck)(struct dt_comm *c); /* must not wait, nor call the driver */
    struct dt_gpu_watched *next;
    uint32_t calls; /* the number of calls that are not over */
    uint32_t looks; /* looks since the communicator was stopped */
};
/* Watches a call from its beginning to its end. While calls are being watched, the communicator's
 * thread is woken within a moment if nothing else has done so (comm/async.h). If the communicator
 * has been stopped for a while, `stuck` is called again and again until all calls are over. */
void dt_gpu_watch(struct dt_gpu_watched *w);
void dt_gpu_unwatch(struct dt_gpu_watched *w);

#endif
