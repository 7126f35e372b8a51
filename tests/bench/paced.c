/* For LD_PRELOAD: limits each connection of the program to $BENCH_PACE bytes a second, as some
 * clouds do. */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/socket.h>

static void pace(int fd)
{
    const char *text = getenv("BENCH_PACE");
    unsigned long rate = text ? strtoul(text, NULL, 10) : 0;

    if (rate)
        setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate);
}

int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
    int (*next)(int, const struct sockaddr *, socklen_t) =
        (int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "connect");

    pace(fd);
    return next(fd, addr, len);
}

static int paced(int fd)
{
    if (fd >= 0)
        pace(fd);
    return fd;
}

int accept(int fd, struct sockaddr *addr, socklen_t *len)
{
    int (*next)(int, struct sockaddr *, socklen_t *) =
        (int (*)(int, struct sockaddr *, socklen_t *))dlsym(RTLD_NEXT, "accept");

    return paced(next(fd, addr, len));
}

int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
    int (*next)(int, struct sockaddr *, socklen_t *, int) =
        (int (*)(int, struct sockaddr *, socklen_t *, int))dlsym(RTLD_NEXT, "accept4");

    return paced(next(fd, addr, len, flags));
}
