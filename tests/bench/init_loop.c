/* What a rank costs: the milliseconds of dt_init once all ranks run, the KiB of memory that dt_init
 * and an all-reduce of 1 MiB add, and the microseconds from the arrival of a late rank until the
 * barrier ends in the others. Rank 0 prints the maximum over all ranks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/dtrun.h"

enum { WORDS = 256 * 1024, BARRIERS = 50, LATE_NS = 20 * 1000 * 1000 };

static float buf[WORDS];

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* The private memory of this process, and its share of shared memory. */
static double kib(void)
{
    char line[128];
    double pss = 0;
    FILE *f = fopen("/proc/self/smaps_rollup", "r");

    while (f && fgets(line, sizeof line, f))
        sscanf(line, "Pss: %lf", &pss);
    if (f)
        fclose(f);
    return pss;
}

static void must(dt_result_t r)
{
    if (r == DT_OK)
        return;
    fprintf(stderr, "%s\n", dt_last_error());
    exit(1);
}

static double most(double mine)
{
    must(dt_all_reduce(DT_WORLD, DT_IN_PLACE, &mine, 1, DT_F64, DT_MAX));
    return mine;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The last rank is late each time. Returns the median time after which the others leave. */
static double late_us(void)
{
    const struct timespec pause = { .tv_nsec = LATE_NS };
    double took[BARRIERS], came, left;

    for (int i = 0; i < BARRIERS; i++) {
        if (dt_rank() == dt_size() - 1)
            nanosleep(&pause, NULL);
        came = now_us();
        must(dt_barrier(DT_WORLD));
        left = now_us();
        took[i] = most(left) - most(came);
    }
    qsort(took, BARRIERS, sizeof *took, by_value);
    return took[BARRIERS / 2];
}

int main(void)
{
    double before, began, ended, ms, grown, late;

    memset(buf, 0, sizeof buf);
    before = kib();
    began = now_us();
    must(dt_init());
    ended = now_us();
    ms = (most(ended) - most(began)) / 1000;
    must(dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, WORDS, DT_F32, DT_SUM));
    grown = most(kib() - before);
    late = dt_size() > 1 ? late_us() : 0;
    if (dt_rank() == 0)
        printf("%2d ranks: dt_init %.1f ms, memory %.0f KiB a rank, barrier after a late rank %.1f "
               "us\n",
               dt_size(), ms, grown, late);
    must(dt_finalize());
    return 0;
}
