/* Saves checkpoints of one buffer by turns with dt_checkpoint_save and dt_checkpoint_isave. Rank 0
 * prints the medians of how long the calls take, how much of that its thread works, and how long
 * the save in the background takes.
 *
 *     save MIB ROUNDS */
#include <dtrun.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS_MOST = 1000 };

static double ms_of(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double now_ms(void)
{
    return ms_of(CLOCK_MONOTONIC);
}

static void check(dt_result_t result)
{
    if (result == DT_OK)
        return;
    fprintf(stderr, "%s\n", dt_last_error());
    exit(1);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, compare);
    return v[n / 2];
}

int main(int argc, char **argv)
{
    int mib = argc == 3 ? atoi(argv[1]) : 0, rounds = argc == 3 ? atoi(argv[2]) : 0;
    double save[ROUNDS_MOST], begin[ROUNDS_MOST], worked[ROUNDS_MOST], whole[ROUNDS_MOST];
    double first = 0;
    size_t bytes = (size_t)mib << 20;
    char *buf = malloc(bytes);
    dt_request_t request;

    if (mib < 1 || rounds < 1 || rounds > ROUNDS_MOST || !buf)
        return 2;
    check(dt_init());
    memset(buf, dt_rank() + 1, bytes);
    check(dt_checkpoint_register("buf", buf, bytes));
    for (int i = -1; i < rounds; i++) { /* the first round warms up */
        int at = i < 0 ? 0 : i;
        double start, before;

        check(dt_barrier(DT_WORLD));
        start = now_ms();
        check(dt_checkpoint_save(2 * i + 2));
        save[at] = now_ms() - start;
        check(dt_barrier(DT_WORLD));
        start = now_ms();
        before = ms_of(CLOCK_THREAD_CPUTIME_ID);
        check(dt_checkpoint_isave(2 * i + 3, &request));
        begin[at] = now_ms() - start;
        worked[at] = ms_of(CLOCK_THREAD_CPUTIME_ID) - before;
        check(dt_wait(&request));
        whole[at] = now_ms() - start;
        first = i < 0 ? begin[0] : first;
    }
    if (dt_rank() == 0)
        printf(
            "%4d MiB per rank: save %.1f ms; isave returns after %.1f ms (%.1f of them work; the "
            "first after %.1f), and has saved after %.1f\n",
            mib, median(save, rounds), median(begin, rounds), median(worked, rounds), first,
            median(whole, rounds));
    free(buf);
    check(dt_finalize());
    return 0;
}
