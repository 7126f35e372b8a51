/* hello: the smallest program for dtrun. Every rank adds its number; every rank learns the sum. */
#include <dtrun.h>
#include <stdio.h>

int main(void)
{
    int ok = dt_init() == DT_OK;
    int32_t sum = dt_rank();

    ok = ok && dt_all_reduce(DT_WORLD, DT_IN_PLACE, &sum, 1, DT_I32, DT_SUM) == DT_OK;
    if (ok)
        printf("rank %d of %d: all ranks add up to %d\n", dt_rank(), dt_size(), (int)sum);
    else
        fprintf(stderr, "hello: %s\n", dt_last_error());
    return ok && dt_finalize() == DT_OK ? 0 : 1;
}
