/* A non-blocking way into a descriptor that belongs to others too. O_NONBLOCK is a property of the
 * open file description, which dtrun shares with its parent: it is never set there (uv_poll_t
 * would). Pipes and terminals are opened once more through /proc/self/fd instead, sockets take
 * MSG_DONTWAIT, files are written by a thread (filewriter.h); readiness is told by an epoll
 * descriptor around the file, which the loop can watch. */
#ifndef DT_IO_NONBLOCK_H
#define DT_IO_NONBLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum dt_fd_kind {
    DT_FD_OWN,  /* opened once more, non-blocking */
    DT_FD_FILE, /* a regular file */
    DT_FD_SOCKET,
    DT_FD_SHARED, /* could not be opened once more (another user's terminal): small writes */
};

struct dt_nonblock {
    enum dt_fd_kind kind;
    int fd;
    int ready_fd; /* polls readable when fd is ready; -1: fd is always ready */
};

/* flags: O_RDONLY or O_WRONLY. Always succeeds. */
void dt_nonblock_open(struct dt_nonblock *f, int fd, int flags);
/* Like read and write, but with -1 and EAGAIN where they would block. With DT_FD_SHARED only to be
 * called when ready_fd says so. */
ssize_t dt_nonblock_read(const struct dt_nonblock *f, void *data, size_t n);
ssize_t dt_nonblock_write(const struct dt_nonblock *f, const void *data, size_t n);
void dt_nonblock_close(struct dt_nonblock *f);

#endif
