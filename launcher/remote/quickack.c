#include "launcher/remote/quickack.h"

#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launcher/base/pidfd.h"

static bool is_connection(int fd)
{
    struct tcp_info info;
    socklen_t size = sizeof info;

    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
           info.tcpi_state == TCP_ESTABLISHED;
}

/* Holds a copy of the descriptor only for the duration of the call, so that a connection closes
 * when its process closes it. If the number refers to something else by then, the option does no
 * harm. */
static bool set_option(const struct dt_quickack *q, int number, int option)
{
    static const int on = 1;
    int fd = dt_pidfd_getfd(q->pidfd, number);
    bool done =
        fd >= 0 && is_connection(fd) && setsockopt(fd, IPPROTO_TCP, option, &on, sizeof on) == 0;

    if (fd >= 0)
        close(fd);
    return done;
}

void dt_quickack_open(struct dt_quickack *q, pid_t pid)
{
    char path[64];
    DIR *dir;
    struct dirent *entry;

    q->n = 0;
    q->pidfd = dt_pidfd_open(pid);
    if (q->pidfd < 0)
        return;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    dir = opendir(path);
    while (dir && q->n < DT_QUICKACK_MAX && (entry = readdir(dir))) {
        int number = atoi(entry->d_name);

        if (number > STDERR_FILENO && set_option(q, number, TCP_NODELAY))
            q->fds[q->n++] = number;
    }
    if (dir)
        closedir(dir);
}

void dt_quickack_now(const struct dt_quickack *q)
{
    for (size_t i = 0; i < q->n; i++)
        set_option(q, q->fds[i], TCP_QUICKACK);
}

void dt_quickack_close(struct dt_quickack *q)
{
    if (q->pidfd >= 0)
        close(q->pidfd);
    q->pidfd = -1;
    q->n = 0;
}
