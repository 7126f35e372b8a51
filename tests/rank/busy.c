/* busy WORDS CALLS: a rank that all-reduces so many f32 so often, says "busy" after the first time
 * and "done" at the end. Where a call fails it says why, and exits 3; that no SIGTERM comes first,
 * it ignores it. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/dtrun.h"

static float *buf;

static int failed(void)
{
    printf("rank %d: %s\n", dt_rank(), dt_last_error());
    return 3;
}

int main(int argc, char **argv)
{
    size_t words = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
    long calls = argc == 3 ? atol(argv[2]) : 0;

    buf = calloc(words, sizeof *buf);

    signal(SIGTERM, SIG_IGN);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!buf || calls < 1)
        return 2;
    if (dt_init() != DT_OK)
        return failed();
    for (long i = 0; i < calls; i++) {
        if (dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, words, DT_F32, DT_SUM) != DT_OK)
            return failed();
        if (i == 0)
            puts("busy");
    }
    if (dt_finalize() != DT_OK)
        return failed();
    puts("done");
    free(buf);
    return 0;
}
