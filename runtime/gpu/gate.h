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
#ifndef DT_GPU_GATE_H
#define DT_GPU_GATE_H

#include <stdbool.h>

#include "runtime/gpu/nvidia/abi_cuda.h"

struct dt_comm;
struct dt_gpu_gate;

/* Makes gates, in whatever context is current, and the thread. CUDA_ERROR_OUT_OF_MEMORY: there can
 * be none. */
CUresult dt_gpu_gates_begin(void);
/* All are open: ends the thread. */
void dt_gpu_gates_end(void);
/* What is queued on the stream from now on waits until the gate is open. The communicator stays for
 * so long. */
CUresult dt_gpu_gate_shut(struct dt_gpu_gate **gate, CUstream stream, const struct dt_comm *c);
/* The stream may go on, and the gate is another stream's from now on. Accepts NULL. */
void dt_gpu_gate_open(struct dt_gpu_gate *gate);

#endif
