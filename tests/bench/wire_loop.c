/* Times an all-reduce of f32 in every wire format, in turns. Rank 0 prints medians in milliseconds
 * and their ratio to the exact format's median.
 *
 *     wire MIB ROUNDS */
#include <dtrun.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS_MOST = 1000, WIRES = 5 };

static const char *const names[WIRES] = { "exact", "f16", "bf16", "int8", "2bit" };

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void need(dt_result_t r)
{
    if (r == DT_OK)
        return;
    fprintf(stderr, "%s\n", dt_last_error());
    exit(1);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Returns the time of the slowest rank. */
static double reduce(float *in, float *out, size_t count, const dt_all_reduce_options_t *o)
{
    double ms;

    need(dt_barrier(DT_WORLD));
    ms = now_ms();
    need(dt_all_reduce_with(DT_WORLD, in, out, count, DT_F32, DT_SUM, o));
    ms = now_ms() - ms;
    need(dt_all_reduce(DT_WORLD, DT_IN_PLACE, &ms, 1, DT_F64, DT_MAX));
    return ms;
}

int main(int argc, char **argv)
{
    static double ms[WIRES][ROUNDS_MOST];
    dt_all_reduce_options_t o = DT_ALL_REDUCE_OPTIONS_INIT;
    float *in, *out, *residual;
    int mib, rounds;
    size_t count;

    if (argc != 3 || (mib = atoi(argv[1])) < 1 || mib > 1024 || (rounds = atoi(argv[2])) < 1 ||
        rounds > ROUNDS_MOST)
        return 2;
    count = (size_t)mib << 18;
    in = malloc(count * sizeof *in);
    out = malloc(count * sizeof *out);
    residual = calloc(count, sizeof *residual);
    if (!in || !out || !residual)
        return 1;
    for (size_t i = 0; i < count; i++)
        in[i] = (float)(i * 2654435761U % 1000003) / 1000003 - 0.5F;
    need(dt_init());
    for (int i = -1; i < rounds; i++) { /* the untimed first run touches the memory */
        for (int wire = 0; wire < WIRES; wire++) {
            o.wire = (dt_wire_t)wire;
            o.residual = o.wire == DT_WIRE_2BIT ? residual : NULL;
            ms[wire][i < 0 ? 0 : i] = reduce(in, out, count, &o);
        }
    }
    for (int wire = 0; wire < WIRES; wire++)
        qsort(ms[wire], (size_t)rounds, sizeof **ms, by_size);
    for (int wire = 0; wire < WIRES && dt_rank() == 0; wire++)
        printf("%4d MiB %-5s %9.2f ms %6.2f\n", mib, names[wire], ms[wire][rounds / 2],
               ms[wire][rounds / 2] / ms[0][rounds / 2]);
    need(dt_finalize());
    free(in);
    free(out);
    free(residual);
    return 0;
}
