/* The one case in which libdtrun ends its process: the job has failed, and a thread is stuck in
 * NCCL, where no abort or error can reach it. If every rank had such a thread, none would ever
 * exit, and dtrun would not restart the job. PyTorch's watchdog ends a process for the same reason.
 */
#ifndef DT_GPU_LEAVE_H
#define DT_GPU_LEAVE_H

#include <stdint.h>

struct dt_comm;

enum {
    DT_LEAVE_STATUS = 123,
};

/* stuck_ns: how long a thread has stayed in NCCL since the communicator was stopped. If the job has
 * been stopped, and 3 s are over or dtrun will soon kill the ranks, tells dtrun why and exits.
 * Otherwise it only returns: the program may go on without the communicator. */
void dt_leave_if_due(const struct dt_comm *c, uint64_t stuck_ns);

#endif
