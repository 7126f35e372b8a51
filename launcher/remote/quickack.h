/* Reduces the latency of another process's TCP connections. Nagle's algorithm holds back a small
 * message until the previous one is acknowledged, and the receiving kernel delays the
 * acknowledgement by 40 ms. A program that leaves Nagle's algorithm on, such as Slurm's srun,
 * delays most messages of an agent by that time. If the kernel does not allow the change (Linux
 * before 5.6, or a container's system call filter), everything works as before. */
#ifndef DT_REMOTE_QUICKACK_H
#define DT_REMOTE_QUICKACK_H

#include <stddef.h>
#include <sys/types.h>

enum {
    DT_QUICKACK_MAX = 4
}; /* connections: srun has one to the step, and sometimes one to Slurm */

struct dt_quickack {
    int pidfd;                /* -1: nothing can be done */
    int fds[DT_QUICKACK_MAX]; /* numbers in that process */
    size_t n;
};

/* Finds the current connections of the process, which must be a child that is not reaped yet. Turns
 * off Nagle's algorithm on them. */
void dt_quickack_open(struct dt_quickack *q, pid_t pid);
/* Acknowledges what the process has received. Does nothing before open and after close. */
void dt_quickack_now(const struct dt_quickack *q);
void dt_quickack_close(struct dt_quickack *q);

#endif
