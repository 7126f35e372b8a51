/* What two processes, each on a core of its own, take to sum their floats through shared memory
 * with nothing else to do: no call is checked, counted, noted or compared, nobody can stop or
 * sleep. Up to 4 KiB each folds all for itself; of more, a half for both, in chunks.
 *
 *     lines MINBYTES MAXBYTES FACTOR SECONDS    lines "BYTES MICROSECONDS", from the first
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    LINE = 64,
    IN_LINE = 48, /* bytes beside the word that says that they are there */
    FEW = 4096,
    CHUNK = 512 * 1024,
    PLACES = 4, /* for chunks: a cache gets lines back late that the other one has just read */
    LEAST_CALLS = 8,
    MOST_CALLS = 100000,
    TRIES = 3,
};

struct line {
    _Alignas(LINE) _Atomic unsigned long shown;
    float data[IN_LINE / sizeof(float)];
};

struct rank {
    struct line lines[2];
    float few[2][FEW / sizeof(float)];
    float staged[PLACES][CHUNK / sizeof(float)];
};

static struct rank *mine, *other;
static int me;
static unsigned long round_now;

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void meet(void)
{
    unsigned parity = round_now & 1;

    atomic_store_explicit(&mine->lines[parity].shown, round_now, memory_order_release);
    while (atomic_load_explicit(&other->lines[parity].shown, memory_order_acquire) < round_now)
        relax();
}

static void fold(float *restrict out, const float *in, const float *theirs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = in[i] + theirs[i];
}

static void sum_few(const float *in, float *out, size_t count)
{
    size_t bytes = count * sizeof *in;
    unsigned parity = ++round_now & 1;
    int in_line = bytes <= IN_LINE;

    memcpy(in_line ? mine->lines[parity].data : mine->few[parity], in, bytes);
    meet();
    fold(out, in, in_line ? other->lines[parity].data : other->few[parity], count);
}

static void sum_chunk(const float *in, float *out, size_t count, size_t place)
{
    size_t half = count / 2, at = me ? half : 0, beside = me ? 0 : half;

    memcpy(mine->staged[place] + beside, in + beside, half * sizeof *in);
    round_now++;
    meet();
    fold(out + at, in + at, other->staged[place] + at, half);
    memcpy(mine->staged[place] + at, out + at, half * sizeof *in);
    round_now++;
    meet();
    memcpy(out + beside, other->staged[place] + beside, half * sizeof *in);
}

static void sum(const float *in, float *out, size_t count)
{
    static size_t chunks;
    size_t most = CHUNK / sizeof *in;

    if (count * sizeof *in <= FEW) {
        sum_few(in, out, count);
        return;
    }
    for (size_t at = 0; at < count; at += most)
        sum_chunk(in + at, out + at, count - at < most ? count - at : most, chunks++ % PLACES);
}

static double repeat(const float *in, float *out, size_t count, int times)
{
    struct timespec start, end;
    float one = 0, other_one;

    sum(&one, &other_one, 1);
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = 0; i < times; i++)
        sum(in, out, count);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return ((double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) * 1e-9) /
           times;
}

/* Both choose alike. */
static int calls_in(double wanted, const float *in, float *out, size_t count)
{
    float calls = 0;

    for (int i = 0; i < TRIES; i++) {
        float took = (float)repeat(in, out, count, LEAST_CALLS / 2), both, fit;

        sum(&took, &both, 1);
        fit = (float)wanted * 2 / both;
        calls = fit > calls ? fit : calls;
    }
    return calls < LEAST_CALLS ? LEAST_CALLS : calls > MOST_CALLS ? MOST_CALLS : (int)calls;
}

static void measure(size_t bytes, const float *in, float *out, double wanted)
{
    size_t count = bytes / sizeof *in;
    float took = (float)repeat(in, out, count, calls_in(wanted, in, out, count)), both;

    sum(&took, &both, 1);
    if (me == 0)
        printf("%zu %.3f\n", bytes, both / 2 * 1e6F);
}

static void bind_to(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        perror("sched_setaffinity");
}

static float *zeros(size_t bytes)
{
    float *p = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);

    if (!p)
        exit(1);
    return memset(p, 0, bytes);
}

static void measure_all(char **args)
{
    size_t most = strtoul(args[1], NULL, 10), factor = strtoul(args[2], NULL, 10);
    float *in = zeros(most), *out = zeros(most);

    for (size_t bytes = strtoul(args[0], NULL, 10); bytes <= most; bytes *= factor)
        measure(bytes, in, out, atof(args[3]));
    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    struct rank *both =
        mmap(NULL, 2 * sizeof *both, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child;

    if (argc != 5 || both == MAP_FAILED)
        return 2;
    memset(both, 0, 2 * sizeof *both);
    child = fork();
    if (child < 0)
        return 1;
    me = child == 0;
    if (me)
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* it would look for the other one's lines for ever */
    bind_to(me);
    mine = both + me;
    other = both + !me;
    measure_all(argv + 1);
    if (me == 0)
        waitpid(child, NULL, 0);
    return 0;
}
