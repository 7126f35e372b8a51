/* A rank that takes ten steps, says so after each, and ends in order: for faults at exact steps.
 * With "meet" it waits for the other ranks in every step. Exits 3 when a call fails. */
#include <stdio.h>
#include <string.h>

#include "runtime/dtrun.h"

enum { STEPS = 10, FAILED = 3 };

int main(int argc, char **argv)
{
    if (dt_init() != DT_OK)
        return FAILED;
    for (int64_t step = 0; step < STEPS; step++) {
        if (argc > 1 && strcmp(argv[1], "meet") == 0 && dt_barrier(DT_WORLD) != DT_OK)
            return FAILED;
        dt_step(step);
        printf("%lld\n", (long long)step);
        fflush(stdout);
    }
    return dt_finalize() == DT_OK ? 0 : FAILED;
}
