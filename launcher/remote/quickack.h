/* Keeps the TCP connections of another process prompt. Nagle's algorithm holds back a small message
 * until the one before it is acknowledged, and the receiver's kernel delays the acknowledgement by
 * 40 ms. A program that does not turn this off itself, as Slurm's srun, delays most messages of an
 * agent by that. Where the kernel does not allow this (Linux before 5.6, a container's filter of
 * system calls), everything works as before. */
#ifndef DT_REMOTE_QUICKACK_H
#define DT_REMOTE_QUICKACK_H

#include <stddef.h>
#include <sys/types.h>

enum { DT_QUICKACK_MAX = 4 }; /* connections; srun has one to the step, and at times one to Slurm */

struct dt_quickack {
    int pidfd;                /* -1: there is nothing to be done */
    int fds[DT_QUICKACK_MAX]; /* numbers in that process */
    size_t n;
};

/* Finds the connections that the process has now; it must be a child that has not been reaped. What
 * it sends on them is no longer held back. */
void dt_quickack_open(struct dt_quickack *q, pid_t pid);
/* Acknowledges what the process has received. Before open and after close it does nothing. */
void dt_quickack_now(const struct dt_quickack *q);
void dt_quickack_close(struct dt_quickack *q);

#endif
