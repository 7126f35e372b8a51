#include "cmd/perf/tune.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/perf/choice.h"
#include "cmd/perf/measure.h"
#include "cmd/perf/tunefile.h"
#include "runtime/tuningfile.h"
#include "runtime/wire/env.h"

enum {
    ROUNDS = 5, /* in which the ways take turns */
    SIZES = 16,
    BUDGETS = 6,
    MOST_THRESHOLDS = 16,
    MOST_BYTES = 64 * 1024 * 1024,
    LINE = 160,
};

static const double round_us = 10000; /* of measuring one way at one size, about */

/* What this launch can measure. */
struct launch {
    int ranks; /* of rank 0's host */
    int hosts;
    bool crowded; /* ranks share CPUs */
    dt_comm_t *host;
    struct dt_perf_buffers buffers;
    struct dt_tuning now; /* what holds before */
    struct dt_perf_threshold chosen[MOST_THRESHOLDS];
    size_t n;
};

enum number { OF_RANKS, OF_HOSTS };

/* A size at which one way gives place to another. The lines force either, whatever the size. */
struct crossover {
    const char *name;
    size_t offset; /* of its value in struct dt_tuning */
    enum number number;
    bool (*applies)(const struct launch *l);
    const char *collective;
    size_t from, to;    /* sizes, doubled each time */
    bool first_of_high; /* the value is the first size of the second way, not the last of the first
                         */
    const char *low, *high;
};

/* How often to look for a rank that is late before sleeping. */
struct budget {
    const char *name;
    size_t offset;
    enum number number;
    bool (*applies)(const struct launch *l);
    uint64_t values[BUDGETS];
};

static bool shares_memory(const struct launch *l)
{
    return l->ranks > 1;
}

static bool has_cpus(const struct launch *l)
{
    return l->ranks > 1 && !l->crowded;
}

static bool is_crowded(const struct launch *l)
{
    return l->ranks > 1 && l->crowded;
}

static bool has_few_hosts(const struct launch *l)
{
    return l->hosts > 1 && l->hosts <= 16;
}

static bool has_a_ring(const struct launch *l)
{
    return l->hosts > 2 && l->hosts <= 16;
}

static bool has_three_hosts(const struct launch *l)
{
    return l->hosts > 2;
}

static bool has_cpus_and_hosts(const struct launch *l)
{
    return l->hosts > 1 && !l->crowded;
}

#define KEY(name) #name, offsetof(struct dt_tuning, name)
static const struct crossover crossovers[] = {
    { KEY(shm_small), OF_RANKS, has_cpus, "all_reduce", 1 << 10, 256 << 10, false, "shm_small = 1M",
      "shm_small = 0" },
    { KEY(shm_small_crowded), OF_RANKS, is_crowded, "all_reduce", 1 << 10, 256 << 10, false,
      "shm_small_crowded = 1M", "shm_small_crowded = 0" },
    { KEY(shm_direct), OF_RANKS, shares_memory, "sendrecv", 32 << 10, 1 << 20, true,
      "shm_direct = 1G", "shm_direct = 0" },
    { KEY(shm_huge), OF_RANKS, shares_memory, "all_reduce", 1 << 20, MOST_BYTES, true,
      "shm_huge = 1G", "shm_huge = 0" },
    { KEY(net_exchange), OF_HOSTS, has_few_hosts, "all_reduce", 1 << 10, 1 << 20, false,
      "net_exchange = 1G", "net_exchange = 0\nnet_direct = 1G" },
    { KEY(net_gather), OF_HOSTS, has_three_hosts, "all_reduce", 1 << 10, 512 << 10, false,
      "net_exchange = 0\nnet_gather = 1M", "net_exchange = 0\nnet_gather = 0\nnet_direct = 1G" },
    { KEY(net_direct), OF_HOSTS, has_a_ring, "all_reduce", 64 << 10, 16 << 20, false,
      "net_exchange = 0\nnet_gather = 0\nnet_direct = 1G",
      "net_exchange = 0\nnet_gather = 0\nnet_direct = 0" },
    { KEY(net_tree), OF_HOSTS, has_three_hosts, "broadcast", 4 << 10, 4 << 20, false,
      "net_tree = 1G", "net_tree = 0" },
};

static const struct budget budgets[] = {
    { KEY(shm_spins), OF_RANKS, has_cpus, { 250, 500, 1000, 2000, 4000, 8000 } },
    { KEY(shm_yields_crowded), OF_RANKS, is_crowded, { 10, 25, 50, 100, 200, 400 } },
    { KEY(net_spins), OF_HOSTS, has_cpus_and_hosts, { 25, 50, 100, 200, 400, 800 } },
};
#undef KEY

static uint64_t value_now(const struct launch *l, size_t offset)
{
    return *(const uint64_t *)((const char *)&l->now + offset);
}

static dt_comm_t *comm_of(const struct launch *l, enum number number)
{
    return number == OF_RANKS ? l->host : DT_WORLD;
}

/* ---- measuring ---- */

/* Communicators like one, each tuned by its lines. */
static dt_result_t make_comms(dt_comm_t *like, const char *const *lines, size_t n,
                              dt_comm_t **comms)
{
    dt_result_t r = DT_OK;

    for (size_t i = 0; i < n; i++)
        comms[i] = DT_COMM_NULL;
    for (size_t i = 0; i < n && r == DT_OK; i++) {
        r = dt_comm_dup(like, &comms[i]);
        if (r == DT_OK)
            r = dt_comm_tune(comms[i], lines[i]);
    }
    return r;
}

static dt_result_t free_comms(dt_comm_t **comms, size_t n, dt_result_t r)
{
    for (size_t i = 0; i < n; i++) {
        if (comms[i] != DT_COMM_NULL && r == DT_OK)
            r = dt_comm_free(comms[i]);
    }
    return r;
}

/* A comparison: a collective at a series of sizes, in communicators that differ by lines alone. */
struct comparison {
    const char *collective;
    enum number number;
    const char *const *lines;
    size_t n;
    size_t from, to;
    double late_us;
    double us[BUDGETS][SIZES]; /* what a call takes */
};

/* Rank 0's clock may say less than nothing of a call to which it came late. */
static dt_result_t time_calls(struct launch *l, const struct comparison *x, dt_comm_t *comm,
                              size_t bytes, double *us)
{
    const struct dt_perf_op *op = dt_perf_op_find(x->collective);
    const struct dt_perf_case c = { .comm = comm, .dtype = DT_F32, .op = DT_SUM };
    size_t count = bytes / sizeof(float);
    double once = 1;
    dt_result_t r = dt_perf_time_us(op, &c, &l->buffers, count, 2, x->late_us, &once);
    int times;

    if (r == DT_OK)
        r = dt_perf_time_us(op, &c, &l->buffers, count, 2, x->late_us, &once);
    once += x->late_us;
    times = once * 2 > round_us ? 2 : (int)(round_us / (once > 1 ? once : 1));
    if (r == DT_OK)
        r = dt_perf_time_us(op, &c, &l->buffers, count, times, x->late_us, us);
    *us = *us > 0.01 ? *us : 0.01;
    return r;
}

/* In communicators of its own, for what one has learned about the memory that it got stays. */
static dt_result_t take_round(struct launch *l, const struct comparison *x, size_t round,
                              double us[BUDGETS][SIZES][ROUNDS])
{
    dt_comm_t *comms[BUDGETS];
    dt_result_t r = make_comms(comm_of(l, x->number), x->lines, x->n, comms);
    size_t size = 0;

    for (size_t bytes = x->from; bytes <= x->to; bytes *= 2, size++) {
        for (size_t k = 0; k < x->n && r == DT_OK; k++) {
            size_t i = (k + round) % x->n;

            r = time_calls(l, x, comms[i], bytes, &us[i][size][round]);
        }
    }
    return free_comms(comms, x->n, r);
}

static dt_result_t compare(struct launch *l, struct comparison *x)
{
    double us[BUDGETS][SIZES][ROUNDS] = { 0 };
    dt_result_t r = DT_OK;

    for (size_t round = 0; round < ROUNDS && r == DT_OK; round++)
        r = take_round(l, x, round, us);
    for (size_t size = 0; size < SIZES && x->from << size <= x->to && r == DT_OK; size++) {
        for (size_t i = 1; i < x->n; i++)
            x->us[i][size] = dt_perf_ratio(us[i][size], us[0][size], ROUNDS);
        x->us[0][size] = dt_perf_undisturbed(us[0][size], ROUNDS);
        for (size_t i = 1; i < x->n; i++)
            x->us[i][size] *= x->us[0][size];
    }
    return r;
}

/* ---- choosing ---- */

/* Less is what two runs of the same differ by. */
static const double least_gain = 1.05;

/* gain: how many times as fast calls are; 0: as fast as before, for less. */
static void choose(struct launch *l, const char *name, size_t offset, enum number number,
                   uint64_t value, double gain)
{
    struct dt_perf_threshold *t = &l->chosen[l->n++];
    uint64_t old = value_now(l, offset);
    time_t now = time(NULL);
    char host[64] = "", day[16] = "";
    struct tm tm;

    snprintf(t->name, sizeof t->name, "%s", name);
    t->number = (uint32_t)(number == OF_RANKS ? l->ranks : l->hosts);
    t->value = gain > 0 && gain < least_gain ? old : value;
    gethostname(host, sizeof host - 1);
    if (localtime_r(&now, &tm))
        strftime(day, sizeof day, "%Y-%m-%d", &tm);
    snprintf(t->comment, sizeof t->comment, "measured on %s, %s", host, day);
    if (dt_rank() != 0)
        return;
    printf("%s[%" PRIu32 "] = %" PRIu64, t->name, t->number, t->value);
    if (t->value == old)
        printf(" as before\n");
    else if (gain > 0)
        printf(" instead of %" PRIu64 ": %.2f times as fast where that matters\n", old, gain);
    else
        printf(" instead of %" PRIu64 ": is enough\n", old);
    fflush(stdout);
}

/* How many of the sizes the first way gets by a threshold. */
static size_t cut_of(const struct crossover *x, uint64_t value)
{
    size_t cut = 0;

    for (size_t bytes = x->from; bytes <= x->to; bytes *= 2)
        cut += x->first_of_high ? bytes < value : bytes <= value;
    return cut;
}

static dt_result_t tune_crossover(struct launch *l, const struct crossover *x)
{
    const char *const lines[2] = { x->low, x->high };
    struct comparison c = { .collective = x->collective,
                            .number = x->number,
                            .lines = lines,
                            .n = 2,
                            .from = x->from,
                            .to = x->to };
    size_t n = cut_of(x, UINT64_MAX), old = cut_of(x, value_now(l, x->offset)), cut;
    dt_result_t r = compare(l, &c);

    if (r != DT_OK)
        return r;
    cut = dt_perf_cut(c.us[0], c.us[1], n);
    choose(l, x->name, x->offset, x->number,
           x->first_of_high ? x->from << cut : (x->from << cut) / 2,
           dt_perf_gain(c.us[0], c.us[1], n, old, cut));
    return DT_OK;
}

/* What sleeping costs, beside looking: the longest that looking for can be worth it. */
static dt_result_t cost_of_sleep(struct launch *l, enum number number, double *us)
{
    static const char *const lines[2] = { "shm_spins = 0\nshm_yields = 0\nshm_yields_crowded = 0\n"
                                          "net_spins = 0",
                                          "shm_spins = 1000000\nnet_spins = 1000000" };
    struct comparison c = {
        .collective = "all_reduce", .number = number, .lines = lines, .n = 2, .from = 8, .to = 8
    };
    dt_result_t r = compare(l, &c);

    *us = c.us[0][0] > c.us[1][0] ? c.us[0][0] - c.us[1][0] : 0;
    return r;
}

/* Rank 0 comes late by what sleeping costs: others should be awake then, and not much longer. */
static dt_result_t tune_budget(struct launch *l, const struct budget *b)
{
    char text[BUDGETS][LINE];
    const char *lines[BUDGETS];
    struct comparison c = { .collective = "all_reduce",
                            .number = b->number,
                            .lines = lines,
                            .n = BUDGETS,
                            .from = 8,
                            .to = 8 };
    double us[BUDGETS];
    size_t best, old = 0;
    dt_result_t r = cost_of_sleep(l, b->number, &c.late_us);

    for (size_t i = 0; i < BUDGETS; i++) {
        snprintf(text[i], sizeof text[i], "%s = %" PRIu64, b->name, b->values[i]);
        lines[i] = text[i];
        old = b->values[i] <= value_now(l, b->offset) ? i : old;
    }
    if (r == DT_OK)
        r = compare(l, &c);
    if (r != DT_OK)
        return r;
    for (size_t i = 0; i < BUDGETS; i++)
        us[i] = c.us[i][0];
    best = dt_perf_enough(us, BUDGETS);
    choose(l, b->name, b->offset, b->number, b->values[best],
           best == old  ? 1
           : best < old ? 0
                        : us[old] / us[best]);
    return DT_OK;
}

/* ---- the launch ---- */

/* Ranks may be bound to a CPU each: what counts is how many there are for all of the host. */
static dt_result_t learn_crowd(struct launch *l)
{
    uint64_t cpus[sizeof(cpu_set_t) / 8] = { 0 };
    int n = 0, local;
    dt_result_t r;

    sched_getaffinity(0, sizeof cpus, (cpu_set_t *)cpus);
    r = dt_all_reduce(l->host, DT_IN_PLACE, cpus, sizeof cpus / 8, DT_U64, DT_BOR);
    for (size_t i = 0; i < sizeof cpus / 8; i++)
        n += __builtin_popcountll(cpus[i]);
    local = dt_local_size();
    l->crowded = local > n;
    if (r == DT_OK)
        r = dt_broadcast(DT_WORLD, &l->crowded, 1, DT_U8, 0);
    if (r == DT_OK)
        r = dt_broadcast(DT_WORLD, &local, 1, DT_I32, 0);
    l->ranks = local;
    return r;
}

static int number_in(const char *name, int otherwise)
{
    const char *text = getenv(name);

    return text ? atoi(text) : otherwise;
}

static void nobody(void *arg, const char *text)
{
    (void)arg;
    (void)text; /* dt_init has told it */
}

/* Collective. Every rank has the thresholds that rank 0 has. */
static dt_result_t learn(struct launch *l)
{
    const struct dt_perf_args a = { .max_bytes = MOST_BYTES };
    struct dt_tuning_table table = { 0 };
    dt_result_t r = dt_comm_split(DT_WORLD, number_in(DT_ENV_NODE_RANK, 0), 0, &l->host);

    l->hosts = number_in(DT_ENV_NODES, 1);
    if (r == DT_OK)
        r = learn_crowd(l);
    if (r == DT_OK && dt_rank() == 0)
        dt_tuningfile_read(&table, nobody, NULL);
    dt_tuning_choose(&l->now, &table, (uint32_t)l->ranks, (uint32_t)l->hosts);
    if (r == DT_OK)
        r = dt_broadcast(DT_WORLD, &l->now, sizeof l->now, DT_U8, 0);
    if (r == DT_OK && !dt_perf_buffers_make(&l->buffers, &a))
        r = DT_ERR_NOMEM;
    return r;
}

static dt_result_t measure(struct launch *l)
{
    dt_result_t r = DT_OK;

    for (size_t i = 0; i < sizeof crossovers / sizeof *crossovers && r == DT_OK; i++) {
        if (crossovers[i].applies(l))
            r = tune_crossover(l, &crossovers[i]);
    }
    for (size_t i = 0; i < sizeof budgets / sizeof *budgets && r == DT_OK; i++) {
        if (budgets[i].applies(l))
            r = tune_budget(l, &budgets[i]);
    }
    return r;
}

/* ---- the file ---- */

static void write_file(const struct launch *l, char wrong[DT_PERF_TUNE_WRONG])
{
    char path[DT_TUNINGFILE_PATH];
    enum dt_tuningfile_found found = dt_tuningfile_find(path);

    if (found == DT_TUNINGFILE_TOO_LONG) {
        snprintf(wrong, DT_PERF_TUNE_WRONG, DT_TUNINGFILE_TOO_LONG_TEXT);
        return;
    }
    if (found != DT_TUNINGFILE_NAMED && !dt_tuningfile_own(path)) {
        snprintf(wrong, DT_PERF_TUNE_WRONG,
                 "there is no home directory: name a file with " DT_ENV_TUNING);
        return;
    }
    if (dt_perf_write_thresholds(path, l->chosen, l->n))
        printf("written to %s\n", path);
    else if (errno == EINVAL)
        snprintf(wrong, DT_PERF_TUNE_WRONG,
                 "%.300s is no regular file: name one with " DT_ENV_TUNING, path);
    else
        snprintf(wrong, DT_PERF_TUNE_WRONG, "%.300s: %s", path, strerror(errno));
}

dt_result_t dt_perf_tune(char wrong[DT_PERF_TUNE_WRONG])
{
    struct launch l = { .host = DT_COMM_NULL };
    dt_result_t r = learn(&l);

    *wrong = '\0';
    if (r == DT_OK)
        r = measure(&l);
    if (r == DT_OK && l.n == 0)
        snprintf(wrong, DT_PERF_TUNE_WRONG, "one rank has nobody to share with: start more");
    else if (r == DT_OK && dt_rank() == 0)
        write_file(&l, wrong);
    dt_perf_buffers_free(&l.buffers);
    return free_comms(&l.host, 1, r);
}
