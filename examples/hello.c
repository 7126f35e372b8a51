/* hello: the smallest program for dtrun. Every rank adds its number; every rank learns the sum. */
#include <dtrun.h>
#include <stdio.h>

int main(void)
{
    int32_t sum;
    dt_result_t result = dt_init();

    sum = dt_rank();
    if (!result)
        result = dt_all_reduce(DT_WORLD, DT_IN_PLACE, &sum, 1, DT_I32, DT_SUM);
    if (!result)
        printf("rank %d of %d: all ranks add up to %d\n", dt_rank(), dt_size(), sum);
    if (!result)
        result = dt_finalize();
    if (result && result != DT_ERR_PEER)
        fprintf(stderr, "hello: rank %d: %s\n", dt_rank(), dt_last_error());
    return result ? 1 : 0;
}
