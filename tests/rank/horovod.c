/* Behaves like a program that calls Horovod's init: sends requests to the rendezvous as Horovod's
 * client does (one connection for each request, no read timeout), and connects to its peers as gloo
 * does, at the addresses that they have published. It aborts if a peer is missing or dead.
 *
 * horovod [HOW...]
 *   sets      also makes a process set of all ranks
 *   again     shuts down and starts again, three times in all
 *   elastic   publishes its notification address first
 *   die-once  in the first generation rank 1 is killed after it has published its addresses
 *   split     sends its requests byte by byte
 *   crowd     rank 0 first opens connections that send nothing or half a request, and keeps them
 *   statuses  sends malformed and oversized requests, and prints the answers; runs without peers */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/rank/variable.h"

enum {
    ADDRESS_BYTES = 136, /* for each peer, as gloo has them */
    PATIENCE_S = 30,
    POLL_MS = 10,
    RETRY_MS = 500,
    TRIES = 3,
    CROWD = 200,
};

struct how {
    bool sets, again, elastic, die_once, split, crowd, statuses;
};

struct answer {
    int status;
    char *body;
    size_t n;
};

static struct how how;

static int number(const char *name)
{
    return atoi(text(name));
}

static void give_up(const char *what, const char *key) __attribute__((noreturn));

static void give_up(const char *what, const char *key)
{
    fprintf(stderr, "rank %s: %s %s\n", text("HOROVOD_RANK"), what, key);
    abort();
}

static void nap(long ms)
{
    nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

/* --- HTTP --- */

static int call(const char *addr, int port)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd < 0 || inet_pton(AF_INET, addr, &to.sin_addr) != 1 ||
        connect(fd, (const struct sockaddr *)&to, sizeof to) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static int call_rendezvous(void)
{
    return call(text("HOROVOD_GLOO_RENDEZVOUS_ADDR"), number("HOROVOD_GLOO_RENDEZVOUS_PORT"));
}

static bool send_all(int fd, const char *bytes, size_t n)
{
    size_t piece = how.split ? 1 : n;
    int on = 1;

    if (how.split)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    while (n) {
        ssize_t sent = send(fd, bytes, piece < n ? piece : n, MSG_NOSIGNAL);

        if (sent < 0)
            return false;
        bytes += sent;
        n -= (size_t)sent;
    }
    return true;
}

/* Reads up to the length in the headers, since the peer need not close. */
static struct answer read_answer(int fd)
{
    static const char length[] = "\r\nContent-Length: ";
    static char bytes[4 << 20];
    struct answer a = { 0 };
    size_t have = 0;

    for (;;) {
        ssize_t n = recv(fd, bytes + have, sizeof bytes - 1 - have, 0);
        const char *end, *at;

        if (n <= 0)
            return a;
        have += (size_t)n;
        bytes[have] = '\0';
        end = strstr(bytes, "\r\n\r\n");
        at = end ? strstr(bytes, length) : NULL;
        if (!at || at > end)
            continue;
        a.body = bytes + (end + 4 - bytes);
        a.n = (size_t)atol(at + strlen(length));
        if (have - (size_t)(a.body - bytes) >= a.n) {
            a.status = atoi(bytes + strlen("HTTP/1.1 "));
            return a;
        }
    }
}

/* last: no more is sent after this, so the server must answer GET without waiting for the key. */
static struct answer request_once(const char *method, const char *key, const char *body, size_t n,
                                  bool last)
{
    char head[1024];
    int fd = call_rendezvous();
    struct answer a = { 0 };

    if (fd < 0)
        return a;
    snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %zu\r\n\r\n", method,
             key, text("HOROVOD_GLOO_RENDEZVOUS_ADDR"), n);
    if (send_all(fd, head, strlen(head)) && send_all(fd, body, n) &&
        (!last || shutdown(fd, SHUT_WR) == 0))
        a = read_answer(fd);
    close(fd);
    return a;
}

static struct answer request(const char *method, const char *key, const char *body, size_t n)
{
    for (int i = 0; i < TRIES; i++) {
        struct answer a = request_once(method, key, body, n, false);

        if (a.status == 200 || a.status == 404)
            return a;
        nap(RETRY_MS);
    }
    give_up("HTTP request failed:", key);
}

static struct answer wait_for(const char *key)
{
    time_t end = time(NULL) + PATIENCE_S;
    struct answer a;

    while ((a = request("GET", key, "", 0)).status == 404) {
        if (time(NULL) > end)
            give_up("wait timeout for", key);
        nap(POLL_MS);
    }
    return a;
}

static bool is_missing(const char *key)
{
    return request_once("GET", key, "", 0, true).status == 404;
}

/* --- peers --- */

/* Listens on the interface that the environment gives to gloo. */
static int listen_on_interface(char addr[INET_ADDRSTRLEN], int *port)
{
    const char *iface = text("HOROVOD_GLOO_IFACE");
    struct ifreq r = { 0 };
    struct sockaddr_in at;
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    snprintf(r.ifr_name, sizeof r.ifr_name, "%s", iface);
    if (fd < 0 || ioctl(fd, SIOCGIFADDR, &r) < 0)
        give_up("no address on interface", iface);
    memcpy(&at, &r.ifr_addr, sizeof at);
    at.sin_port = 0;
    if (bind(fd, (const struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 128) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &len) < 0)
        give_up("cannot listen on", iface);
    inet_ntop(AF_INET, &at.sin_addr, addr, INET_ADDRSTRLEN);
    *port = ntohs(at.sin_port);
    return fd;
}

/* Every byte depends on sender, receiver and scope. */
static void fill(char *p, const char *scope, int from, int to)
{
    unsigned seed = (unsigned)(from * 31 + to * 7 + 1);

    for (; *scope; scope++)
        seed = seed * 33 + (unsigned char)*scope;
    for (int i = 0; i < ADDRESS_BYTES; i++)
        p[i] = (char)(seed >> (i % 24));
}

static char *make_addresses(const char *scope, int rank, int size, const char *addr, int port)
{
    char *body = calloc((size_t)size, ADDRESS_BYTES), *p = body;

    for (int to = 0; to < size; to++) {
        if (to == rank)
            continue;
        fill(p, scope, rank, to);
        snprintf(p, ADDRESS_BYTES, "%s %d", addr, port);
        p += ADDRESS_BYTES;
    }
    return body;
}

/* Checks what the peer has published for this rank. Returns the peer's address. */
static void check_addresses(const char *scope, int from, int rank, int size, const struct answer *a,
                            char addr[INET_ADDRSTRLEN], int *port)
{
    char want[ADDRESS_BYTES];
    const char *p = a->body + (size_t)(rank - (rank > from)) * ADDRESS_BYTES;

    if (a->n != (size_t)(size - 1) * ADDRESS_BYTES)
        give_up("wrong length of addresses in", scope);
    fill(want, scope, from, rank);
    if (sscanf(p, "%15s %d", addr, port) != 2 ||
        memcmp(p + strlen(p) + 1, want + strlen(p) + 1, ADDRESS_BYTES - strlen(p) - 1) != 0)
        give_up("wrong addresses in", scope);
}

/* A sum that is also a barrier: rank 0 of the scope adds up what the others send, and sends back
 * the sum. */
static int sum_at_root(int listener, int size, int own)
{
    int fds[1024], sum = own;

    for (int i = 1; i < size; i++) {
        int value;

        fds[i] = accept(listener, NULL, NULL);
        if (recv(fds[i], &value, sizeof value, MSG_WAITALL) != sizeof value)
            give_up("a peer has died", "");
        sum += value;
    }
    for (int i = 1; i < size; i++) {
        if (send(fds[i], &sum, sizeof sum, MSG_NOSIGNAL) != sizeof sum)
            give_up("a peer has died", "");
        close(fds[i]);
    }
    return sum;
}

static int sum_of(const char *addr, int port, int own)
{
    int fd = call(addr, port), sum;

    if (fd < 0)
        give_up("cannot connect to", addr);
    if (send(fd, &own, sizeof own, MSG_NOSIGNAL) != sizeof own ||
        recv(fd, &sum, sizeof sum, MSG_WAITALL) != sizeof sum)
        give_up("a peer has died:", addr);
    close(fd);
    return sum;
}

/* --- the rendezvous --- */

static void put_own(const char *scope, int rank, int size, const char *addr, int port)
{
    char key[300], *body = make_addresses(scope, rank, size, addr, port);
    const char *host = text("HOROVOD_HOSTNAME");

    snprintf(key, sizeof key, "/%s/rank_%d", scope, rank);
    request("PUT", key, host, strlen(host));
    snprintf(key, sizeof key, "/%s/%d", scope, rank);
    if (!is_missing(key))
        give_up("addresses of another or a dead rank are at", key);
    request("PUT", key, body, (size_t)(size - 1) * ADDRESS_BYTES);
    free(body);
}

/* Returns the sum of own over all ranks of the scope. */
static int rendezvous(const char *scope, int rank, int size, int own)
{
    char addr[INET_ADDRSTRLEN], root[INET_ADDRSTRLEN] = "", key[300];
    int port, root_port = 0, sum, listener = listen_on_interface(addr, &port);

    put_own(scope, rank, size, addr, port);
    if (how.die_once && number("DTRUN_RESTART_COUNT") == 0 && number("HOROVOD_RANK") == 1)
        raise(SIGKILL);
    for (int i = 0; i < size; i++) {
        struct answer a;

        snprintf(key, sizeof key, "/%s/rank_%d", scope, i);
        if (wait_for(key).n == 0)
            give_up("no host name at", key);
        snprintf(key, sizeof key, "/%s/%d", scope, i);
        a = wait_for(key);
        if (i != rank)
            check_addresses(scope, i, rank, size, &a, addr, &port);
        if (i == 0 && rank != 0) {
            memcpy(root, addr, sizeof root);
            root_port = port;
        }
    }
    sum = rank == 0 ? sum_at_root(listener, size, own) : sum_of(root, root_port, own);
    close(listener);
    snprintf(key, sizeof key, "/%s/%d", scope, rank);
    request("DELETE", key, "", 0);
    if (!is_missing(key))
        give_up("not deleted:", key);
    return sum;
}

struct sums {
    int global, local, cross;
};

static struct sums init(const char *suffix)
{
    int own = number("HOROVOD_RANK") + 1;
    struct sums s;
    char scope[200];

    snprintf(scope, sizeof scope, "global%s", suffix);
    s.global = rendezvous(scope, number("HOROVOD_RANK"), number("HOROVOD_SIZE"), own);
    snprintf(scope, sizeof scope, "local_%s%s", text("HOROVOD_HOSTNAME"), suffix);
    s.local = rendezvous(scope, number("HOROVOD_LOCAL_RANK"), number("HOROVOD_LOCAL_SIZE"), own);
    snprintf(scope, sizeof scope, "cross_%d%s", number("HOROVOD_LOCAL_RANK"), suffix);
    s.cross = rendezvous(scope, number("HOROVOD_CROSS_RANK"), number("HOROVOD_CROSS_SIZE"), own);
    return s;
}

/* All ranks take part, so that none starts again while another is still in init. */
static void shut_down(int round)
{
    char scope[32];

    snprintf(scope, sizeof scope, "shutdown_%d", round);
    rendezvous(scope, number("HOROVOD_RANK"), number("HOROVOD_SIZE"), 0);
}

/* --- requests that Horovod does not make --- */

static void make_crowd(void)
{
    static const char half[] = "PUT /global/0 HTTP/1.1\r\nContent-Length: 1000\r\n\r\nabc";

    for (int i = 0; i < CROWD; i++) {
        int fd = call_rendezvous();

        if (fd < 0)
            give_up("no connection for the crowd", "");
        if (i % 2)
            send(fd, half, i % 4 == 1 ? 10 : strlen(half), MSG_NOSIGNAL);
    }
}

static void tell_status(const char *name, const char *bytes, size_t n)
{
    int fd = call_rendezvous();

    if (fd < 0 || !send_all(fd, bytes, n))
        give_up("cannot send", name);
    printf("%s: %d\n", name, read_answer(fd).status);
    close(fd);
}

static void tell_statuses(void)
{
    static const struct {
        const char *name, *bytes;
    } cases[] = {
        { "POST", "POST /s/k HTTP/1.1\r\n\r\n" },
        { "no key", "GET /s HTTP/1.1\r\n\r\n" },
        { "no length", "PUT /s/k HTTP/1.1\r\n\r\n" },
        { "chunks", "PUT /s/k HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" },
        { "HTTP/2", "GET /s/k HTTP/2\r\n\r\n" },
        { "too large", "PUT /s/k HTTP/1.1\r\nContent-Length: 100000000\r\n\r\nabc" },
    };
    static char head[8192] = "GET /s/k HTTP/1.1\r\nA: ";

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        tell_status(cases[i].name, cases[i].bytes, strlen(cases[i].bytes));
    memset(head + strlen(head), 'a', sizeof head - strlen(head));
    tell_status("long head", head, sizeof head);
    printf("after that: %d\n", request("PUT", "/s/k", "", 0).status);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *word;
        bool *flag;
    } words[] = {
        { "sets", &how.sets },         { "again", &how.again }, { "elastic", &how.elastic },
        { "die-once", &how.die_once }, { "split", &how.split }, { "crowd", &how.crowd },
        { "statuses", &how.statuses },
    };

    for (int i = 1; i < argc; i++) {
        for (size_t k = 0; k < sizeof words / sizeof *words; k++)
            *words[k].flag |= strcmp(argv[i], words[k].word) == 0;
    }
    if (how.statuses) {
        tell_statuses();
        return 0;
    }
    if (how.crowd && number("HOROVOD_RANK") == 0)
        make_crowd();
    if (how.elastic) {
        char key[200];

        snprintf(key, sizeof key, "/worker_addresses/%s:%d", text("HOROVOD_HOSTNAME"),
                 number("HOROVOD_LOCAL_RANK"));
        request("PUT", key, "\x80\x04 any bytes", 12);
    }
    for (int round = how.again ? 3 : 1; round > 0; round--) {
        struct sums s = init("");

        if (how.sets)
            init("_process_set_hash_1f2e3d4c5b6a7988");
        shut_down(round);
        printf("rank %s of %s: sums %d %d %d\n", text("HOROVOD_RANK"), text("HOROVOD_SIZE"),
               s.global, s.local, s.cross);
    }
    return 0;
}
