/* The all-reduce of an MPI library, measured as dtrun-perf measures ours: f32 sums, out of place,
 * calls that follow each other, the mean of all ranks. Prints "BYTES MICROSECONDS" lines.
 *
 *     allreduce_mpi MINBYTES MAXBYTES FACTOR SECONDS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double repeat(const float *in, float *out, int count, int times)
{
    double start;

    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    for (int i = 0; i < times; i++)
        MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return (MPI_Wtime() - start) / times;
}

/* Every rank chooses alike. */
static int iterations(const float *in, float *out, int count, double seconds)
{
    double t = repeat(in, out, count, 5);

    t = repeat(in, out, count, 5);
    MPI_Allreduce(MPI_IN_PLACE, &t, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    t = seconds / (t > 1e-8 ? t : 1e-8);
    return t < 20 ? 20 : t > 100000 ? 100000 : (int)t;
}

int main(int argc, char **argv)
{
    long least = argc > 4 ? atol(argv[1]) : 4, most = argc > 4 ? atol(argv[2]) : 1 << 20;
    long factor = argc > 4 ? atol(argv[3]) : 4;
    double seconds = argc > 4 ? atof(argv[4]) : 0.1;
    float *in = aligned_alloc(4096, (size_t)(most + 4096) / 4096 * 4096);
    float *out = aligned_alloc(4096, (size_t)(most + 4096) / 4096 * 4096);
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    memset(in, 0, (size_t)most);
    memset(out, 0, (size_t)most);
    for (long bytes = least; bytes <= most; bytes *= factor) {
        int count = (int)(bytes / 4), n = iterations(in, out, count, seconds);
        double t = repeat(in, out, count, n);

        MPI_Allreduce(MPI_IN_PLACE, &t, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (rank == 0)
            printf("%ld %.3f\n", bytes, t / size * 1e6);
    }
    MPI_Finalize();
    return 0;
}
