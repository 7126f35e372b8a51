/* Non-blocking input and output on a descriptor that other processes share. O_NONBLOCK belongs to
 * the open file description, which dtrun shares with its parent, so dtrun must not set it there
 * (uv_poll_t would). Instead it opens pipes and terminals once more through /proc/self/fd, uses
 * MSG_DONTWAIT on sockets, and reads and writes files in threads (filereader.h, filewriter.h). An
 * epoll descriptor around the file, which the loop can watch, reports readiness. */
#ifndef DT_IO_NONBLOCK_H
#define DT_IO_NONBLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum dt_fd_kind {
    DT_FD_OWN,  /* opened once more, non-blocking */
    DT_FD_FILE, /* a regular file */
    DT_FD_SOCKET,
    DT_FD_SHARED, /* cannot be opened once more (another user's terminal): small writes */
};

struct dt_nonblock {
    enum dt_fd_kind kind;
    int fd;
    int ready_fd; /* polls readable when fd is ready; -1: fd is always ready */
    bool lines;   /* dt_nonblock_write keeps lines of up to PIPE_BUF bytes whole */
};

/* flags: O_RDONLY or O_WRONLY. Always succeeds. */
void dt_nonblock_open(struct dt_nonblock *f, int fd, int flags);
/* Like read and write, but they return -1 and EAGAIN where those would block. With DT_FD_SHARED
 * call them only when ready_fd polls readable. */
ssize_t dt_nonblock_read(const struct dt_nonblock *f, void *data, size_t n);
ssize_t dt_nonblock_write(const struct dt_nonblock *f, const void *data, size_t n);
/* Returns how many bytes of a pipe wait for its reader, or -1 if it is no pipe. */
int dt_nonblock_unread(const struct dt_nonblock *f);
void dt_nonblock_close(struct dt_nonblock *f);

#endif
