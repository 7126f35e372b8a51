/* What an exchange between two hosts takes without any library: a connection, send(2) and recv(2)
 * of as much as the kernel takes at once, nothing folded. No all-reduce between two hosts over one
 * connection can take less.
 *
 *     sockets MINBYTES MAXBYTES FACTOR SECONDS PORT [ADDRESS]    lines "BYTES MICROSECONDS"
 *
 * With ADDRESS it calls the other one, which listens and prints. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { LEAST_CALLS = 8, MOST_CALLS = 100000, CALL_S = 30 };

struct pipe {
    int fd;
    char *out, *in;
};

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void need(bool ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    exit(1);
}

static int take_call(struct sockaddr_in *at)
{
    int one = 1, fd, door = socket(AF_INET, SOCK_STREAM, 0);

    setsockopt(door, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    need(bind(door, (struct sockaddr *)at, sizeof *at) == 0 && listen(door, 1) == 0, "bind");
    fd = accept(door, NULL, NULL);
    need(fd >= 0, "accept");
    close(door);
    return fd;
}

/* The other one may not have come so far. */
static int call(struct sockaddr_in *at)
{
    double until = seconds() + CALL_S;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    while (connect(fd, (struct sockaddr *)at, sizeof *at) != 0) {
        need(errno == ECONNREFUSED && seconds() < until, "connect");
        close(fd);
        sched_yield();
        fd = socket(AF_INET, SOCK_STREAM, 0);
    }
    return fd;
}

static size_t some(ssize_t n)
{
    need(n > 0 || (n < 0 && errno == EAGAIN), "connection");
    return n > 0 ? (size_t)n : 0;
}

static void exchange(const struct pipe *p, size_t bytes)
{
    size_t sent = 0, got = 0, before;

    while (sent < bytes || got < bytes) {
        before = sent + got;
        if (sent < bytes)
            sent += some(send(p->fd, p->out + sent, bytes - sent, MSG_NOSIGNAL));
        if (got < bytes)
            got += some(recv(p->fd, p->in + got, bytes - got, 0));
        if (sent + got == before)
            sched_yield();
    }
}

static double repeat(const struct pipe *p, size_t bytes, int times)
{
    double start;

    exchange(p, 1);
    start = seconds();
    for (int i = 0; i < times; i++)
        exchange(p, bytes);
    return (seconds() - start) / times;
}

/* Whoever listens chooses, and tells. */
static int calls_in(const struct pipe *p, size_t bytes, double wanted, bool choose)
{
    double calls = wanted / repeat(p, bytes, LEAST_CALLS);

    calls = calls < LEAST_CALLS ? LEAST_CALLS : calls > MOST_CALLS ? MOST_CALLS : calls;
    *(int *)p->out = (int)calls;
    exchange(p, sizeof(int));
    return choose ? (int)calls : *(int *)p->in;
}

int main(int argc, char **argv)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    size_t bytes, most, factor;
    struct pipe p;
    int one = 1;

    if (argc < 6 || (argc == 7 && inet_pton(AF_INET, argv[6], &at.sin_addr) != 1))
        return 2;
    bytes = strtoul(argv[1], NULL, 10);
    most = strtoul(argv[2], NULL, 10);
    factor = strtoul(argv[3], NULL, 10);
    if (factor < 2)
        return 2;
    at.sin_port = htons((uint16_t)atoi(argv[5]));
    p.out = aligned_alloc(4096, most + 4096);
    p.in = aligned_alloc(4096, most + 4096);
    need(p.out && p.in, "memory");
    memset(p.out, 1, most + 4096); /* no page is to be made while a call is timed */
    memset(p.in, 1, most + 4096);
    p.fd = argc == 7 ? call(&at) : take_call(&at);
    setsockopt(p.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    fcntl(p.fd, F_SETFL, O_NONBLOCK);
    for (; bytes <= most; bytes *= factor) {
        double mean = repeat(&p, bytes, calls_in(&p, bytes, atof(argv[4]), argc == 6));

        if (argc == 6)
            printf("%zu %.3f\n", bytes, mean * 1e6);
    }
    return 0;
}
