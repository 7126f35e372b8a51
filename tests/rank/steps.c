/* A rank that takes ten steps, says so after each, and ends in order: for faults at exact steps.
 * With "meet" it waits for the other ranks in every step; with "slow" it does the same, but takes a
 * while to say that a call failed, as interpreters do; with "idle" rank 0 waits for nothing in the
 * middle. With "hang" the last rank stops coming in the middle, in the first generation. Exits 3
 * when a call fails, and says why. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/dtrun.h"

enum { STEPS = 10, FAILED = 3, SLOW_US = 20 * 1000 };

static bool slow;

static int failed(void)
{
    if (slow)
        usleep(SLOW_US);
    fprintf(stderr, "%s\n", dt_last_error());
    return FAILED;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    bool hang = strcmp(how, "hang") == 0, idle = strcmp(how, "idle") == 0;
    bool meet;

    slow = strcmp(how, "slow") == 0;
    meet = hang || idle || slow || strcmp(how, "meet") == 0;
    if (dt_init() != DT_OK)
        return failed();
    hang = hang && dt_generation() == 1 && dt_rank() == dt_size() - 1;
    for (int64_t step = 0; step < STEPS; step++) {
        while ((hang || (idle && dt_rank() == 0)) && step == STEPS / 2)
            pause();
        if (meet && dt_barrier(DT_WORLD) != DT_OK)
            return failed();
        dt_step(step);
        printf("%lld\n", (long long)step);
        fflush(stdout);
    }
    return dt_finalize() == DT_OK ? 0 : failed();
}
