/* How fast processes sum floats through shared memory if they do nothing else: calls are not
 * checked, counted, recorded or compared, and processes cannot be stopped or sleep. For small
 * arrays each process sums everything. For larger ones each sums one block for all, in chunks. Two
 * processes have a core each. If there are more processes than cores, waiting ones yield.
 *
 *     lines RANKS MINBYTES MAXBYTES FACTOR SECONDS    lines "BYTES MICROSECONDS", from the first
 *                                                     process */
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
    IN_LINE = 48, /* bytes in a line beside the word that announces them */
    FEW = 4096,
    FEW_CROWDED = 16 * 1024, /* the same with shared cores, where synchronising takes longer */
    BLOCK = 8 * 1024,        /* a block that stays in the L1 cache while it is summed */
    CHUNK = 512 * 1024,
    MOST_RANKS = 64,
    PLACES = 4, /* for chunks: lines that another core has just read are slow to write */
    LEAST_CALLS = 8,
    MOST_CALLS = 1000000,
    WARMING_CALLS = 100,
    TRIES = 3,
};

struct line {
    _Alignas(LINE) _Atomic unsigned long shown;
    float data[IN_LINE / sizeof(float)];
};

struct rank {
    struct line lines[2];
    float few[2][FEW_CROWDED / sizeof(float)];
    float staged[PLACES][CHUNK / sizeof(float)];
};

static struct rank *all;
static size_t me, ranks;
static int crowded;
static unsigned long round_now;

static void relax(void)
{
    if (crowded) {
        sched_yield();
        return;
    }
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void meet(void)
{
    unsigned parity = round_now & 1;

    atomic_store_explicit(&all[me].lines[parity].shown, round_now, memory_order_release);
    for (size_t i = 1; i < ranks; i++) {
        struct line *theirs = &all[(me + i) % ranks].lines[parity];

        while (atomic_load_explicit(&theirs->shown, memory_order_acquire) < round_now)
            relax();
    }
}

static void add(float *restrict out, const float *a, const float *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = a[i] + b[i];
}

static void add_to(float *restrict out, const float *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] += b[i];
}

/* theirs[rank]; this process's own is `in`. */
static void fold(float *out, const float *in, const float *const *theirs, size_t count)
{
    const size_t block = BLOCK / sizeof *in;

    for (size_t at = 0; at < count; at += block) {
        size_t n = count - at < block ? count - at : block;

        add(out + at, in + at, theirs[(me + 1) % ranks] + at, n);
        for (size_t i = 2; i < ranks; i++)
            add_to(out + at, theirs[(me + i) % ranks] + at, n);
    }
}

static void find_few(const float **theirs, int in_line)
{
    unsigned parity = round_now & 1;

    for (size_t i = 0; i < ranks; i++)
        theirs[i] = in_line ? all[i].lines[parity].data : all[i].few[parity];
}

static void sum_few(const float *in, float *out, size_t count)
{
    size_t bytes = count * sizeof *in;
    unsigned parity = ++round_now & 1;
    int in_line = bytes <= IN_LINE;
    const float *theirs[ranks];

    memcpy(in_line ? all[me].lines[parity].data : all[me].few[parity], in, bytes);
    meet();
    find_few(theirs, in_line);
    fold(out, in, theirs, count);
}

/* Where the rank's block begins. */
static size_t part_at(size_t count, size_t rank)
{
    return count * rank / ranks;
}

static void find_staged(const float **theirs, size_t place, size_t at)
{
    for (size_t i = 0; i < ranks; i++)
        theirs[i] = all[i].staged[place] + at;
}

static void sum_chunk(const float *in, float *out, size_t count, size_t place)
{
    size_t at = part_at(count, me), end = part_at(count, me + 1);
    float *staged = all[me].staged[place];
    const float *theirs[ranks];

    memcpy(staged, in, at * sizeof *in);
    memcpy(staged + end, in + end, (count - end) * sizeof *in);
    round_now++;
    meet();
    find_staged(theirs, place, at);
    fold(out + at, in + at, theirs, end - at);
    memcpy(staged + at, out + at, (end - at) * sizeof *in);
    round_now++;
    meet();
    for (size_t i = 1; i < ranks; i++) {
        size_t peer = (me + i) % ranks, first = part_at(count, peer);

        memcpy(out + first, all[peer].staged[place] + first,
               (part_at(count, peer + 1) - first) * sizeof *in);
    }
}

static void sum(const float *in, float *out, size_t count)
{
    static size_t chunks;
    size_t most = CHUNK / sizeof *in;

    if (count * sizeof *in <= (crowded ? FEW_CROWDED : FEW)) {
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

/* The first process's value, in all processes. Each adds up in another order, but zeros round
 * nothing. */
static double of_first(double value)
{
    float in = me == 0 ? (float)value : 0, out;

    sum(&in, &out, 1);
    return (double)out;
}

/* All processes use the same number. */
static int calls_in(double wanted, const float *in, float *out, size_t count)
{
    double calls = 0;

    for (int i = 0; i < TRIES; i++) {
        double fit = wanted / of_first(repeat(in, out, count, LEAST_CALLS / 2));

        calls = fit > calls ? fit : calls;
    }
    return calls < LEAST_CALLS ? LEAST_CALLS : calls > MOST_CALLS ? MOST_CALLS : (int)calls;
}

static void warm_up(double length, const float *in, float *out)
{
    for (double ran = 0; ran < length;)
        ran += of_first(repeat(in, out, 1, WARMING_CALLS)) * WARMING_CALLS;
}

static void measure(size_t bytes, const float *in, float *out, double wanted)
{
    size_t count = bytes / sizeof *in;
    float took = (float)repeat(in, out, count, calls_in(wanted, in, out, count)), together;

    sum(&took, &together, 1);
    if (me == 0)
        printf("%zu %.3f\n", bytes, together / (float)ranks * 1e6F);
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
    double wanted = atof(args[3]);

    warm_up(2 * wanted, in, out);
    for (size_t bytes = strtoul(args[0], NULL, 10); bytes <= most; bytes *= factor)
        measure(bytes, in, out, wanted);
    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    ranks = argc == 6 ? strtoul(argv[1], NULL, 10) : 0;
    if (ranks < 2 || ranks > MOST_RANKS)
        return 2;
    crowded = (long)ranks > sysconf(_SC_NPROCESSORS_ONLN);
    all =
        mmap(NULL, ranks * sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        return 1;
    memset(all, 0, ranks * sizeof *all);
    for (size_t i = 1; i < ranks && me == 0; i++) {
        pid_t child = fork();

        if (child < 0)
            return 1; /* with those that have started */
        me = child == 0 ? i : 0;
    }
    if (me > 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* otherwise it would poll the others' lines for ever */
    if (!crowded)
        bind_to((int)me);
    measure_all(argv + 2);
    while (me == 0 && wait(NULL) > 0)
        ;
    return 0;
}
