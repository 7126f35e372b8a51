/* Descriptors of processes. glibc has <sys/pidfd.h> only since 2.36. All return -1 with errno set
 * if the kernel (before Linux 5.3, for dt_pidfd_getfd 5.6) or a container does not allow the call.
 */
#ifndef DT_BASE_PIDFD_H
#define DT_BASE_PIDFD_H

#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int dt_pidfd_open(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* Sends SIGKILL. */
static inline int dt_pidfd_kill(int pidfd)
{
    return (int)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
}

/* Returns a copy of the process's descriptor, closed on exec. */
static inline int dt_pidfd_getfd(int pidfd, int fd)
{
    return (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
}

#endif
