/* busy WORDS CALLS: a rank that makes CALLS all-reduces of WORDS f32, prints "busy" after the first
 * one and "done" at the end. If a call fails it prints why and exits with 3. It ignores SIGTERM,
 * which could arrive before that. */
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
