/* The one case in which libdtrun ends its process: the job has failed, and a thread is stuck in
 * NCCL, where no abort or error can reach it. If every rank had such a thread, none would ever
 * exit, and dtrun would not restart the job. PyTorch's watchdog ends a process for the same reason.
 */
#ifndef DT_GPU_LEAVE_H
#define DT_GPU_LEAVE_H

struct dt_comm;

enum {
    DT_LEAVE_STATUS = 123,
    DT_LEAVE_S = 3, /* after the communicator is stopped; the default grace period is longer */
};

/* If the job has been stopped, tells dtrun why and exits. Otherwise it only returns: the program
 * may go on without the communicator. */
void dt_leave_job(const struct dt_comm *c);

#endif
