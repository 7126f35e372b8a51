/* A backward pass: computes layers one after the other, and pushes the gradients of each into a
 * bucket while it computes the next. Rank 0 prints how long computing takes alone, reducing alone
 * and both together, in milliseconds (medians), and how much of reducing is hidden.
 *
 *     overlap LAYERS BYTES BUCKET STEPS processor    computing occupies a processor for each rank
 *     overlap LAYERS BYTES BUCKET STEPS device       computing occupies a device, and the rank
 * waits
 *
 * If all ranks share one machine, "at most" is what could be hidden if its processors were always
 * busy: their total work is the minimum for both together. */
#include <dtrun.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WORK = 4096, STEPS_MOST = 1000 };

struct pass {
    int layers;
    size_t count; /* of a layer's gradients */
    float *gradients;
    dt_bucket_t *bucket;
    double layer_ms; /* time to compute one layer */
    bool device;     /* whether a device computes */
};

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double thread_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* How long all processors of the machine have worked in total, including interrupts. */
static double machine_ms(void)
{
    double user, nice, system, interrupts, soft;
    FILE *f = fopen("/proc/stat", "r");

    if (!f || fscanf(f, "cpu %lf %lf %lf %*f %*f %lf %lf", &user, &nice, &system, &interrupts,
                     &soft) != 5) {
        fprintf(stderr, "/proc/stat does not show the processors' work\n");
        exit(1);
    }
    fclose(f);
    return (user + nice + system + interrupts + soft) * 1e3 / (double)sysconf(_SC_CLK_TCK);
}

/* Counts this thread's own CPU time, so the work is the same even if other processes use the
 * processor. */
static void compute(double ms)
{
    static volatile float data[WORK];
    double until = thread_ms() + ms;

    while (thread_ms() < until) {
        for (int i = 0; i < WORK; i++)
            data[i] = data[i] * 0.5F + 1;
    }
}

static void await_device(double ms)
{
    struct timespec t = { (time_t)(ms / 1e3), 0 };

    t.tv_nsec = (long)((ms - (double)t.tv_sec * 1e3) * 1e6);
    nanosleep(&t, NULL);
}

static void need(dt_result_t r)
{
    if (r == DT_OK)
        return;
    fprintf(stderr, "%s\n", dt_last_error());
    exit(1);
}

/* Returns how long it took. */
static double run(struct pass *p, int computing, int reducing)
{
    double start;

    need(dt_barrier(DT_WORLD));
    start = now_ms();
    for (int i = 0; i < p->layers; i++) {
        if (computing)
            (p->device ? await_device : compute)(p->layer_ms);
        if (reducing)
            need(dt_bucket_push(p->bucket, p->gradients + (size_t)i * p->count, p->count));
    }
    if (reducing)
        need(dt_bucket_wait(p->bucket));
    return now_ms() - start;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_size);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static void measure(struct pass *p, int steps)
{
    static double alone[STEPS_MOST], apart[STEPS_MOST], both[STEPS_MOST];
    double compute_ms, reduce_ms, both_ms, busy_ms = 0;

    for (int i = 0; i < steps; i++) {
        alone[i] = run(p, 1, 0);
        apart[i] = run(p, 0, 1);
        need(dt_barrier(DT_WORLD)); /* so that all ranks start together */
        busy_ms -= machine_ms();
        both[i] = run(p, 1, 1);
        busy_ms += machine_ms();
    }
    compute_ms = median(alone, steps);
    reduce_ms = median(apart, steps);
    both_ms = median(both, steps);
    busy_ms /= steps * (double)sysconf(_SC_NPROCESSORS_ONLN);
    if (busy_ms < compute_ms)
        busy_ms = compute_ms;
    if (dt_rank() == 0)
        printf("compute %.1f ms, reduce %.1f ms, both %.1f ms: %.0f %% hidden, at most %.0f\n",
               compute_ms, reduce_ms, both_ms, 100 * (compute_ms + reduce_ms - both_ms) / reduce_ms,
               100 * (compute_ms + reduce_ms - busy_ms) / reduce_ms);
}

int main(int argc, char **argv)
{
    struct pass p = { 0 };
    size_t bytes;
    int steps;

    if (argc != 6 || (p.layers = atoi(argv[1])) < 1 || (steps = atoi(argv[4])) < 1 ||
        steps > STEPS_MOST || (bytes = strtoull(argv[2], NULL, 10)) < (size_t)p.layers * 4)
        return 2;
    p.device = strcmp(argv[5], "device") == 0;
    p.count = bytes / (size_t)p.layers / sizeof(float);
    p.gradients = calloc((size_t)p.layers * p.count, sizeof(float));
    if (!p.gradients)
        return 1;
    need(dt_init());
    need(dt_bucket_create(DT_WORLD, strtoull(argv[3], NULL, 10), DT_F32, DT_AVG, &p.bucket));
    for (int i = 0; i < 2; i++) /* adjusts computing until it takes as long as reducing */
        p.layer_ms = run(&p, 0, 1) / p.layers;
    need(dt_broadcast(DT_WORLD, &p.layer_ms, 1, DT_F64, 0));
    measure(&p, steps);
    need(dt_bucket_free(p.bucket));
    need(dt_finalize());
    free(p.gradients);
    return 0;
}
