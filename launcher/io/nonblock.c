#include "launcher/io/nonblock.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static void open_again(struct dt_nonblock *f, int flags)
{
    char path[40];
    int fd;

    snprintf(path, sizeof path, "/proc/self/fd/%d", f->fd);
    fd = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0) {
        f->kind = DT_FD_OWN;
        f->fd = fd;
    }
}

/* Returns -1 for a file that is always ready, such as a regular file or /dev/null: epoll refuses
 * it. */
static int open_ready_fd(int fd, int flags)
{
    struct epoll_event ev = { .events = flags == O_WRONLY ? EPOLLOUT : EPOLLIN };
    int ep = epoll_create1(EPOLL_CLOEXEC);

    if (ep >= 0 && epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) < 0) {
        close(ep);
        ep = -1;
    }
    return ep;
}

void dt_nonblock_open(struct dt_nonblock *f, int fd, int flags)
{
    struct stat st = { 0 };

    *f = (struct dt_nonblock){ .kind = DT_FD_SHARED, .fd = fd, .ready_fd = -1 };
    if (fstat(fd, &st) < 0)
        return;
    if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
        f->kind = DT_FD_FILE;
    else if (S_ISSOCK(st.st_mode))
        f->kind = DT_FD_SOCKET;
    else
        open_again(f, flags);
    f->ready_fd = open_ready_fd(f->fd, flags);
}

ssize_t dt_nonblock_read(const struct dt_nonblock *f, void *data, size_t n)
{
    if (f->kind == DT_FD_SOCKET)
        return recv(f->fd, data, n, MSG_DONTWAIT);
    return read(f->fd, data, n);
}

/* Returns how many of n bytes to write to a pipe or terminal. A pipe that polls writable accepts
 * PIPE_BUF, and accepts so much at once or not at all. So if these end with a line, nothing that
 * another process writes to that pipe gets into the middle of one. */
static size_t whole_lines(const char *data, size_t n)
{
    const char *end;

    if (n <= PIPE_BUF)
        return n;
    end = memrchr(data, '\n', PIPE_BUF);
    return end ? (size_t)(end - data) + 1 : PIPE_BUF;
}

ssize_t dt_nonblock_write(const struct dt_nonblock *f, const void *data, size_t n)
{
    if (f->kind == DT_FD_SOCKET)
        return send(f->fd, data, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (f->lines && f->kind != DT_FD_FILE)
        n = whole_lines(data, n);
    else if (f->kind == DT_FD_SHARED && n > PIPE_BUF)
        n = PIPE_BUF;
    return write(f->fd, data, n);
}

int dt_nonblock_unread(const struct dt_nonblock *f)
{
    struct stat st;
    int n;

    return fstat(f->fd, &st) == 0 && S_ISFIFO(st.st_mode) && ioctl(f->fd, FIONREAD, &n) == 0 ? n
                                                                                             : -1;
}

void dt_nonblock_close(struct dt_nonblock *f)
{
    if (f->ready_fd >= 0)
        close(f->ready_fd);
    if (f->kind == DT_FD_OWN)
        close(f->fd);
    f->fd = f->ready_fd = -1;
}
