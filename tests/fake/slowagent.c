/* A part of an agent that takes half a second to make a pipe, and so a second to fork a rank. */
#include <sys/syscall.h>
#include <unistd.h>

/* Replaces libc's. */
int pipe2(int fds[2], int flags)
{
    usleep(500 * 1000);
    return (int)syscall(SYS_pipe2, fds, flags);
}
