/* A rank that takes ten steps, says so after each, and ends in order: for faults at exact steps.
 * With "meet" it waits for the other ranks in every step; with "hang" the last rank stops coming in
 * the middle, in the first generation. Exits 3 when a call fails, and says why. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/dtrun.h"

enum { STEPS = 10, FAILED = 3 };

static int failed(void)
{
    fprintf(stderr, "%s\n", dt_last_error());
    return FAILED;
}

int main(int argc, char **argv)
{
    bool hang = argc > 1 && strcmp(argv[1], "hang") == 0;
    bool meet = hang || (argc > 1 && strcmp(argv[1], "meet") == 0);

    if (dt_init() != DT_OK)
        return failed();
    hang = hang && dt_generation() == 1 && dt_rank() == dt_size() - 1;
    for (int64_t step = 0; step < STEPS; step++) {
        while (hang && step == STEPS / 2)
            pause();
        if (meet && dt_barrier(DT_WORLD) != DT_OK)
            return failed();
        dt_step(step);
        printf("%lld\n", (long long)step);
        fflush(stdout);
    }
    return dt_finalize() == DT_OK ? 0 : failed();
}
