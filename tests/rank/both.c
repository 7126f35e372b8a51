/* A rank that uses MPI and libdtrun. Its two arguments are "mpi" or "dt": which of the two it
 * initialises first, and which it finalises first. The tests build it with each MPI's own
 * compiler. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "runtime/dtrun.h"

static int begin(int with_mpi, int *argc, char ***argv)
{
    if (with_mpi)
        return MPI_Init(argc, argv) == MPI_SUCCESS;
    return dt_init() == DT_OK;
}

static int leave(int with_mpi)
{
    return with_mpi ? MPI_Finalize() == MPI_SUCCESS : dt_finalize() == DT_OK;
}

static int sum_twice(void)
{
    int rank, value, sum = 0;
    int32_t same = 0;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    value = rank + 1;
    if (rank != dt_rank() ||
        MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS)
        return 0;
    same = value;
    if (dt_all_reduce(DT_WORLD, DT_IN_PLACE, &same, 1, DT_I32, DT_SUM) != DT_OK)
        return 0;
    printf("sums %d and %d of %d ranks\n", sum, (int)same, dt_size());
    return sum == same;
}

int main(int argc, char **argv)
{
    int mpi_begins = argc > 1 && strcmp(argv[1], "mpi") == 0;
    int mpi_leaves = argc > 2 && strcmp(argv[2], "mpi") == 0;

    if (!begin(mpi_begins, &argc, &argv) || !begin(!mpi_begins, &argc, &argv)) {
        fprintf(stderr, "%s\n", dt_last_error());
        return 2;
    }
    if (!sum_twice())
        return 3;
    return leave(mpi_leaves) && leave(!mpi_leaves) ? 0 : 4;
}
