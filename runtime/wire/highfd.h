/* Descriptors above 2. A program may have closed its standard ones; what it prints then must not go
 * into a file or a connection of ours. */
#ifndef DT_WIRE_HIGHFD_H
#define DT_WIRE_HIGHFD_H

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Takes what has just been opened, close-on-exec, or -1. Returns fd if that is above 2, else one
 * above 2 in its place, or -1 with errno. */
static inline int dt_fd_high(int fd)
{
    int high, error;

    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    error = errno;
    close(fd);
    errno = error;
    return high;
}

#endif
