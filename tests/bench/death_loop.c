/* Ranks that make calls until one of the last rank's own threads kills it. Every other rank prints
 * when its call failed. With -DUSE_MPI it is a program of an MPI library, otherwise of libdtrun.
 *
 *     death all_reduce|barrier|send_recv FILE
 *
 * FILE gets the time of the kill, and survivors print "RANK HOST TIME". Times are microseconds of
 * the clock that all processes of a machine share. */
#include <err.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    WORDS = 64 * 1024,
};

#ifndef CALLS
#define CALLS 100 /* before the death, to set up all connections */
#endif

static int rank, size;
static float in[WORDS], out[WORDS];
static atomic_int calls;

#ifdef USE_MPI
#include <mpi.h>

static void begin(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

static int all_reduce(void)
{
    return MPI_Allreduce(in, out, WORDS, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static int barrier(void)
{
    return MPI_Barrier(MPI_COMM_WORLD);
}

static int send(int peer)
{
    return MPI_Send(in, WORDS, MPI_FLOAT, peer, 0, MPI_COMM_WORLD);
}

static int recv(int peer)
{
    return MPI_Recv(out, WORDS, MPI_FLOAT, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
#else
#include "runtime/dtrun.h"

static void begin(void)
{
    signal(SIGTERM,
           SIG_IGN); /* dtrun also ends the others, but the call must first return its error */
    if (dt_init() != DT_OK) {
        fprintf(stderr, "%s\n", dt_last_error());
        exit(1);
    }
    rank = dt_rank();
    size = dt_size();
}

static int all_reduce(void)
{
    return dt_all_reduce(DT_WORLD, in, out, WORDS, DT_F32, DT_SUM);
}

static int barrier(void)
{
    return dt_barrier(DT_WORLD);
}

static int send(int peer)
{
    return dt_send(DT_WORLD, in, WORDS, DT_F32, peer);
}

static int recv(int peer)
{
    return dt_recv(DT_WORLD, out, WORDS, DT_F32, peer);
}
#endif

static int64_t now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* The last rank exchanges a message with each of the others. */
static int send_recv(void)
{
    int failed = 0;

    if (rank != size - 1) {
        failed = recv(size - 1);
        return failed ? failed : send(size - 1);
    }
    for (int peer = 0; peer < size - 1 && !failed; peer++) {
        failed = send(peer);
        if (!failed)
            failed = recv(peer);
    }
    return failed;
}

static void *die(void *path)
{
    const struct timespec pause = { .tv_nsec = 1000000 };
    FILE *f = fopen(path, "w");

    if (!f)
        err(1, "%s", (const char *)path);
    while (calls < CALLS)
        nanosleep(&pause, NULL);
    fprintf(f, "%lld\n", (long long)now_us());
    fclose(f);
    raise(SIGKILL);
    return NULL;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*make)(void);
    } kinds[] = { { "all_reduce", all_reduce },
                  { "barrier", barrier },
                  { "send_recv", send_recv } };
    char host[64] = "";
    pthread_t killer;
    size_t kind = 0;

    while (kind < 3 && argc == 3 && strcmp(kinds[kind].name, argv[1]) != 0)
        kind++;
    if (argc != 3 || kind == 3)
        return 2;
    begin();
    if (rank == size - 1 && pthread_create(&killer, NULL, die, argv[2]) != 0)
        return 1;
    while (kinds[kind].make() == 0)
        calls++;
    gethostname(host, sizeof host);
    printf("%d %s %lld\n", rank, host, (long long)now_us());
    return 1;
}
