/* The all-reduce of one library, measured alike for all: f32 sums, out of place, back-to-back
 * calls, the mean over all ranks. With -DUSE_MPI it measures an MPI library, otherwise libdtrun.
 *
 *     allreduce MINBYTES MAXBYTES FACTOR SECONDS    lines "BYTES MICROSECONDS", from rank 0; before
 *                                                   the first size, calls for twice the SECONDS
 *     allreduce ... SECONDS shared                  the same in memory from dt_mem_alloc
 *     allreduce each CALLS                          lines "BYTES P50 P99": percentiles of the
 *                                                   microseconds of single calls of 4 B to 4 KiB
 *                                                   on rank 0
 *     allreduce cpu BYTES CALLS                     a line "BYTES MICROSECONDS SECONDS": the CPU
 *                                                   time that a rank uses for each GB
 *     allreduce wait SECONDS                        the CPU time, in percent, of a rank that waits
 *                                                   this long for rank 0 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef USE_MPI
#include <mpi.h>

static void begin(int *rank, int *size)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    MPI_Comm_size(MPI_COMM_WORLD, size);
}

static void sum(const float *in, float *out, size_t count)
{
    MPI_Allreduce(in, out, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static double agree(double mine, bool most)
{
    MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_DOUBLE, most ? MPI_MAX : MPI_SUM, MPI_COMM_WORLD);
    return mine;
}

static void meet(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static void *allocate_shared(size_t bytes)
{
    (void)bytes;
    return NULL;
}

static void end(void)
{
    MPI_Finalize();
}
#else
#include "runtime/dtrun.h"

static void check(dt_result_t result)
{
    if (result == DT_OK)
        return;
    fprintf(stderr, "%s\n", dt_last_error());
    exit(1);
}

static void begin(int *rank, int *size)
{
    check(dt_init());
    *rank = dt_rank();
    *size = dt_size();
}

static void sum(const float *in, float *out, size_t count)
{
    check(dt_all_reduce(DT_WORLD, in, out, count, DT_F32, DT_SUM));
}

static double agree(double mine, bool most)
{
    check(dt_all_reduce(DT_WORLD, DT_IN_PLACE, &mine, 1, DT_F64, most ? DT_MAX : DT_SUM));
    return mine;
}

static void meet(void)
{
    check(dt_barrier(DT_WORLD));
}

static void *allocate_shared(size_t bytes)
{
    void *p;

    check(dt_mem_alloc(DT_WORLD, bytes, &p));
    return p;
}

static void end(void)
{
    check(dt_finalize());
}
#endif

enum { LEAST_CALLS = 8, MOST_CALLS = 1000000, WARMING_CALLS = 100, TRIES = 3 };

static double seconds(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double repeat(const float *in, float *out, size_t count, int times)
{
    double start;

    meet();
    start = seconds(CLOCK_MONOTONIC);
    for (int i = 0; i < times; i++)
        sum(in, out, count);
    return (seconds(CLOCK_MONOTONIC) - start) / times;
}

/* All ranks use the same number, from the best of a few tries, since something may disturb a
 * try. */
static int calls_in(double wanted, const float *in, float *out, size_t count)
{
    double calls = 0;

    for (int i = 0; i < TRIES; i++) {
        double fit = wanted / agree(repeat(in, out, count, LEAST_CALLS / 2), true);

        calls = fit > calls ? fit : calls;
    }
    return calls < LEAST_CALLS ? LEAST_CALLS : calls > MOST_CALLS ? MOST_CALLS : (int)calls;
}

/* The kernel takes up to a second to spread ranks that share cores. */
static void warm_up(double length, const float *in, float *out)
{
    for (double ran = 0; ran < length;)
        ran += agree(repeat(in, out, 1, WARMING_CALLS), true) * WARMING_CALLS;
}

static float *zeros(size_t bytes, bool shared)
{
    float *p = shared ? allocate_shared(bytes) : aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);

    if (!p)
        exit(1);
    return memset(p, 0, bytes); /* so that no page fault falls into a timed call */
}

static void measure(int rank, int size, char **args, bool shared)
{
    size_t least = strtoul(args[0], NULL, 10), most = strtoul(args[1], NULL, 10);
    size_t factor = strtoul(args[2], NULL, 10);
    float *in = zeros(most, shared), *out = zeros(most, shared);
    double wanted = atof(args[3]);

    warm_up(2 * wanted, in, out);
    for (size_t bytes = least; bytes <= most; bytes *= factor) {
        size_t count = bytes / sizeof *in;
        int calls = calls_in(wanted, in, out, count);
        double mean = agree(repeat(in, out, count, calls), false) / size;

        if (rank == 0)
            printf("%zu %.3f\n", bytes, mean * 1e6);
    }
    if (!shared) {
        free(in);
        free(out);
    }
}

static int compare(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;

    return (one > other) - (one < other);
}

static void time_each(int rank, int calls)
{
    enum { MOST = 1024 };
    static float in[MOST], out[MOST];
    double *took = malloc((size_t)calls * sizeof *took);

    if (!took)
        exit(1);
    for (size_t count = 1; count <= MOST; count *= 4) {
        repeat(in, out, count, LEAST_CALLS);
        for (int i = 0; i < calls; i++) {
            double start = seconds(CLOCK_MONOTONIC);

            sum(in, out, count);
            took[i] = seconds(CLOCK_MONOTONIC) - start;
        }
        qsort(took, (size_t)calls, sizeof *took, compare);
        if (rank == 0)
            printf("%zu %.3f %.3f\n", count * sizeof *in, took[calls / 2] * 1e6,
                   took[calls * 99 / 100] * 1e6);
    }
    free(took);
}

static void cost(int rank, int size, size_t bytes, int calls)
{
    float *in = zeros(bytes, false), *out = zeros(bytes, false);
    double mean, used;

    repeat(in, out, bytes / sizeof *in, 1);
    used = seconds(CLOCK_PROCESS_CPUTIME_ID);
    mean = repeat(in, out, bytes / sizeof *in, calls);
    used = seconds(CLOCK_PROCESS_CPUTIME_ID) - used;
    mean = agree(mean, false) / size;
    used = agree(used, false) / size;
    if (rank == 0)
        printf("%zu %.3f %.3f\n", bytes, mean * 1e6, used / ((double)bytes * calls / 1e9));
    free(in);
    free(out);
}

static void wait_for_rank_0(int rank, double length)
{
    float in = 0, out;
    double used;

    meet();
    used = seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (rank == 0)
        usleep((useconds_t)(length * 1e6));
    sum(&in, &out, 1);
    used = seconds(CLOCK_PROCESS_CPUTIME_ID) - used;
    used = agree(rank == 0 ? 0 : used, true);
    if (rank == 0)
        printf("%.2f\n", 100 * used / length);
}

int main(int argc, char **argv)
{
    int rank, size;

    begin(&rank, &size);
    if (argc == 5 || (argc == 6 && strcmp(argv[5], "shared") == 0))
        measure(rank, size, argv + 1, argc == 6);
    else if (argc == 3 && atoi(argv[2]) > 0 && strcmp(argv[1], "each") == 0)
        time_each(rank, atoi(argv[2]));
    else if (argc == 4 && atoi(argv[3]) > 0 && strcmp(argv[1], "cpu") == 0)
        cost(rank, size, strtoul(argv[2], NULL, 10), atoi(argv[3]));
    else if (argc == 3 && strcmp(argv[1], "wait") == 0)
        wait_for_rank_0(rank, atof(argv[2]));
    end();
    return 0;
}
