/* How fast hosts exchange the bytes of an all-reduce without any library: one connection for each
 * pair, send(2) and recv(2) of as much as the kernel takes at once, and no reduction. Each host
 * sends 2/N of the bytes to each other host, which is the minimum (Patarasuk and Yuan, JPDC 69(2),
 * 2009). Between two hosts, no all-reduce over one connection can be faster than one such step.
 * Between more hosts, an all-reduce that sends no more bytes has two steps with half the bytes
 * each, because no host can send sums before all have sent their values.
 *
 *     sockets MINBYTES MAXBYTES FACTOR SECONDS STEPS PORT RANK ADDRESS...
 *
 * ADDRESS... are the addresses of all ranks. Each rank connects to those before it. Rank 0 prints
 * lines "BYTES MICROSECONDS". */
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

enum { LEAST_CALLS = 8, MOST_CALLS = 100000, TRIES = 3, CALL_S = 30, MOST_HOSTS = 64 };

struct pipe {
    int fd;
    char *out, *in;
    size_t sent, got;
};

static struct pipe pipes[MOST_HOSTS]; /* by rank; this one's own is unused */
static int hosts, rank, steps;

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

static struct sockaddr_in address(const char *text, const char *port)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };

    need(inet_pton(AF_INET, text, &at.sin_addr) == 1, text);
    return at;
}

static int listen_at(struct sockaddr_in at)
{
    int one = 1, door = socket(AF_INET, SOCK_STREAM, 0);

    setsockopt(door, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    need(bind(door, (struct sockaddr *)&at, sizeof at) == 0 && listen(door, hosts) == 0, "bind");
    return door;
}

/* Tries until the other rank listens, then sends the caller's number. */
static int call(struct sockaddr_in at)
{
    double until = seconds() + CALL_S;
    unsigned char self = (unsigned char)rank;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    while (connect(fd, (struct sockaddr *)&at, sizeof at) != 0) {
        need(errno == ECONNREFUSED && seconds() < until, "connect");
        close(fd);
        sched_yield();
        fd = socket(AF_INET, SOCK_STREAM, 0);
    }
    need(write(fd, &self, 1) == 1, "greeting");
    return fd;
}

static void take_call(int door)
{
    unsigned char from = 0;
    int fd = accept(door, NULL, NULL);

    need(fd >= 0 && read(fd, &from, 1) == 1 && from > rank && from < hosts, "accept");
    pipes[from].fd = fd;
}

static void connect_all(char **addresses, const char *port)
{
    int one = 1, door = listen_at(address(addresses[rank], port));

    for (int peer = 0; peer < rank; peer++)
        pipes[peer].fd = call(address(addresses[peer], port));
    for (int peer = rank + 1; peer < hosts; peer++)
        take_call(door);
    close(door);
    for (int peer = 0; peer < hosts; peer++)
        if (peer != rank) {
            setsockopt(pipes[peer].fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            fcntl(pipes[peer].fd, F_SETFL, O_NONBLOCK);
        }
}

static size_t some(ssize_t n)
{
    need(n > 0 || (n < 0 && errno == EAGAIN), "connection");
    return n > 0 ? (size_t)n : 0;
}

/* Returns the number of bytes that have moved. */
static size_t move(struct pipe *p, size_t bytes)
{
    size_t before = p->sent + p->got;

    if (p->sent < bytes)
        p->sent += some(send(p->fd, p->out + p->sent, bytes - p->sent, MSG_NOSIGNAL));
    if (p->got < bytes)
        p->got += some(recv(p->fd, p->in + p->got, bytes - p->got, 0));
    return p->sent + p->got - before;
}

static void exchange(size_t bytes)
{
    size_t left = 2 * bytes * (size_t)(hosts - 1), moved;

    for (int peer = 0; peer < hosts; peer++)
        pipes[peer].sent = pipes[peer].got = 0;
    for (; left > 0; left -= moved) {
        moved = 0;
        for (int peer = 0; peer < hosts; peer++)
            if (peer != rank)
                moved += move(&pipes[peer], bytes);
        if (moved == 0)
            sched_yield();
    }
}

static double repeat(size_t bytes, int times)
{
    double start;

    exchange(1);
    start = seconds();
    for (int i = 0; i < times * steps; i++)
        exchange(bytes);
    return (seconds() - start) / times;
}

/* Rank 0 chooses the number and sends it. */
static int calls_in(size_t bytes, double wanted)
{
    double most = 0;
    int calls;

    for (int i = 0; i < TRIES; i++) {
        double fit = wanted / repeat(bytes, LEAST_CALLS / 2);

        most = fit > most ? fit : most;
    }
    calls = (int)(most < LEAST_CALLS ? LEAST_CALLS : most > MOST_CALLS ? MOST_CALLS : most);
    for (int peer = 0; peer < hosts; peer++)
        memcpy(pipes[peer].out, &calls, sizeof calls);
    exchange(sizeof calls);
    if (rank > 0)
        memcpy(&calls, pipes[0].in, sizeof calls);
    return calls;
}

int main(int argc, char **argv)
{
    size_t bytes, most, factor, share;

    if (argc < 10 || argc - 8 > MOST_HOSTS)
        return 2;
    bytes = strtoul(argv[1], NULL, 10);
    most = strtoul(argv[2], NULL, 10);
    factor = strtoul(argv[3], NULL, 10);
    steps = atoi(argv[5]);
    rank = atoi(argv[7]);
    hosts = argc - 8;
    if (factor < 2 || steps < 1 || rank < 0 || rank >= hosts)
        return 2;
    for (int peer = 0; peer < hosts; peer++) {
        pipes[peer].out = aligned_alloc(4096, most + 4096);
        pipes[peer].in = aligned_alloc(4096, most + 4096);
        need(pipes[peer].out && pipes[peer].in, "memory");
        memset(pipes[peer].out, 1, most + 4096); /* so that no page fault falls into a timed call */
        memset(pipes[peer].in, 1, most + 4096);
    }
    connect_all(argv + 8, argv[6]);
    for (; bytes <= most; bytes *= factor) {
        double mean;

        share = (2 * bytes - 1) / (size_t)(hosts * steps) + 1;
        mean = repeat(share, calls_in(share, atof(argv[4])));
        if (rank == 0)
            printf("%zu %.3f\n", bytes, mean * 1e6);
    }
    return 0;
}
