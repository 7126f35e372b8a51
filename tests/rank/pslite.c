/* Behaves like a program that imports MXNet, in the role that DMLC_ROLE names. Scheduler, servers
 * and workers connect to each other. Workers push a number to every server and get the sum back.
 * When all workers have reported that, all processes end together. A process that loses a peer
 * before then waits for ever, as ps-lite does.
 *
 * pslite [ROUNDS [HOW]]; ROUNDS 0: until killed in the first generation, one round in the others.
 * HOW: "stay": servers do not end; "fall": they exit with 3 when all is done. */
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/rank/variable.h"

enum { NODES_MAX = 64, LINE_BYTES = 300 };

struct peers {
    FILE *v[NODES_MAX]; /* for reading; writes use the descriptor */
    int n;
};

static int number(const char *name)
{
    int n = atoi(text(name));

    if (n < 0 || n > 65535 || (strncmp(name, "DMLC_NUM", 8) == 0 && n > NODES_MAX / 2))
        exit(2);
    return n;
}

static void wait_for_ever(void)
{
    for (;;)
        pause();
}

static void get(FILE *from, char line[LINE_BYTES])
{
    if (!fgets(line, LINE_BYTES, from))
        wait_for_ever();
}

static void await(FILE *from, const char *word)
{
    char line[LINE_BYTES];

    get(from, line);
    if (strncmp(line, word, strlen(word)) != 0) {
        fprintf(stderr, "%s instead of %s\n", line, word);
        exit(2);
    }
}

static void put(const struct peers *to, const char *word)
{
    for (int i = 0; i < to->n; i++)
        dprintf(fileno(to->v[i]), "%s", word);
}

static struct addrinfo *resolve(const char *host, const char *port)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;

    if (getaddrinfo(host, port, &hints, &found) != 0)
        exit(2);
    return found;
}

/* Tries until the other side listens. */
static FILE *call(const char *host, const char *port)
{
    struct addrinfo *to = resolve(host, port);
    const struct timespec between = { 0, 20 * 1000 * 1000 };
    int fd;

    for (;;) {
        fd = socket(to->ai_family, SOCK_STREAM, 0);
        if (fd >= 0 && connect(fd, to->ai_addr, to->ai_addrlen) == 0)
            break;
        close(fd);
        nanosleep(&between, NULL);
    }
    freeaddrinfo(to);
    return fdopen(fd, "r");
}

static int listen_at(const char *host, const char *port)
{
    struct addrinfo *at = resolve(host, port);
    int fd = socket(at->ai_family, SOCK_STREAM, 0), on = 1;

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        bind(fd, at->ai_addr, at->ai_addrlen) < 0 || listen(fd, NODES_MAX) < 0) {
        perror(port);
        exit(2);
    }
    freeaddrinfo(at);
    return fd;
}

static void take(struct peers *peers, int listener, int n)
{
    for (; peers->n < n; peers->n++)
        peers->v[peers->n] = fdopen(accept(listener, NULL, NULL), "r");
}

static int schedule(int workers, int servers)
{
    int listener = listen_at(text("DMLC_NODE_HOST"), text("DMLC_PS_ROOT_PORT"));
    struct peers all = { .n = 0 }, callers = { .n = 0 };
    char line[LINE_BYTES];

    take(&all, listener, workers + servers);
    for (int i = 0; i < all.n; i++) {
        get(all.v[i], line);
        if (strncmp(line, "worker", 6) == 0)
            callers.v[callers.n++] = all.v[i];
        else
            put(&all, line);
    }
    put(&all, "go\n");
    printf("%d workers and %d servers have met\n", callers.n, all.n - callers.n);
    for (int i = 0; i < callers.n; i++)
        await(callers.v[i], "bye");
    put(&all, "end\n");
    return 0;
}

/* Connects to the servers, whose addresses come from the scheduler. */
static void meet(FILE *scheduler, int servers, struct peers *peers)
{
    char line[LINE_BYTES], host[LINE_BYTES], port[LINE_BYTES];

    for (int i = 0; i < servers; i++) {
        get(scheduler, line);
        if (sscanf(line, "server %299s %299s", host, port) != 2)
            exit(2);
        if (peers)
            peers->v[peers->n++] = call(host, port);
    }
    await(scheduler, "go");
}

static void serve(const struct peers *callers)
{
    char line[LINE_BYTES];

    for (;;) {
        int sum = 0, gone = 0;

        for (int i = 0; i < callers->n; i++) {
            if (fgets(line, sizeof line, callers->v[i]))
                sum += atoi(line);
            else
                gone++;
        }
        if (gone == callers->n)
            return;
        snprintf(line, sizeof line, "%d\n", sum);
        put(callers, line);
    }
}

static int run_server(FILE *scheduler, int workers, int servers, const char *how)
{
    const char *host = text("DMLC_NODE_HOST");
    int listener = listen_at(host, "0");
    struct sockaddr_storage at;
    socklen_t size = sizeof at;
    struct peers callers = { .n = 0 };
    char port[16];

    getsockname(listener, (struct sockaddr *)&at, &size);
    getnameinfo((struct sockaddr *)&at, size, NULL, 0, port, sizeof port, NI_NUMERICSERV);
    dprintf(fileno(scheduler), "server %s %s\n", host, port);
    meet(scheduler, servers, NULL);
    take(&callers, listener, workers);
    serve(&callers);
    await(scheduler, "end");
    if (strcmp(how, "stay") == 0)
        wait_for_ever();
    return strcmp(how, "fall") == 0 ? 3 : 0;
}

static int work(FILE *scheduler, int servers, long rounds)
{
    struct peers peers = { .n = 0 };
    char line[LINE_BYTES];
    int sum = 0;

    dprintf(fileno(scheduler), "worker\n");
    meet(scheduler, servers, &peers);
    for (long round = 1; rounds == 0 || round <= rounds; round++) {
        snprintf(line, sizeof line, "%d\n", 1 + number("DMLC_WORKER_ID"));
        put(&peers, line);
        sum = 0;
        for (int i = 0; i < peers.n; i++) {
            get(peers.v[i], line);
            sum += atoi(line);
        }
        if (round == 1)
            printf("sum %d\n", sum);
    }
    dprintf(fileno(scheduler), "bye\n");
    await(scheduler, "end");
    return 0;
}

int main(int argc, char **argv)
{
    const char *role = text("DMLC_ROLE"), *how = argc > 2 ? argv[2] : "";
    int workers = number("DMLC_NUM_WORKER"), servers = number("DMLC_NUM_SERVER");
    long rounds = argc > 1 ? atol(argv[1]) : 1;
    FILE *scheduler;

    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("%s pid %d\n", role, (int)getpid());
    if (strcmp(role, "scheduler") == 0)
        return schedule(workers, servers);
    scheduler = call(text("DMLC_PS_ROOT_URI"), text("DMLC_PS_ROOT_PORT"));
    if (strcmp(role, "server") == 0)
        return run_server(scheduler, workers, servers, how);
    return work(scheduler, servers, number("DTRUN_RESTART_COUNT") ? 1 : rounds);
}
