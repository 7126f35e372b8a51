#include "cmd/perf/tune.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/perf/choice.h"
#include "cmd/perf/compare.h"
#include "cmd/perf/thresholds.h"
#include "cmd/perf/tunefile.h"
#include "runtime/base/tuningfile.h"
#include "runtime/coll/layout.h"
#include "runtime/wire/env.h"
#include "runtime/wire/hostshm.h"

enum {
    THRESHOLDS = sizeof(struct dt_tuning) / sizeof(uint64_t),
    LINE = 40,
    LINES = THRESHOLDS * 64,
    STREAM_BYTES = 4 * 1024 * 1024,
};

struct tuning {
    struct dt_perf_launch launch;
    int calls; /* as in struct dt_perf_comparison */
    dt_comm_t *host;
    struct dt_perf_buffers buffers;
    struct dt_tuning now; /* the thresholds before tuning */
    struct dt_perf_threshold chosen[THRESHOLDS];
    size_t n;
    char lines[LINES]; /* the lines that set the chosen values */
};

static uint64_t value_now(const struct tuning *t, size_t offset)
{
    return *(const uint64_t *)((const char *)&t->now + offset);
}

static dt_comm_t *comm_of(const struct tuning *t, enum dt_perf_number number)
{
    return number == DT_PERF_OF_RANKS ? t->host : DT_WORLD;
}

/* ---- choosing ---- */

/* Two runs of the same algorithm may differ by up to this factor. */
static const double least_gain = 1.05;

static void tell(const struct dt_perf_threshold *t, uint64_t old, double gain)
{
    printf("%s[%" PRIu32 "] = %" PRIu64, t->name, t->number, t->value);
    if (t->value == old)
        printf(" as before\n");
    else if (gain > 0)
        printf(" instead of %" PRIu64 ": %.2f times as fast where that matters\n", old, gain);
    else
        printf(" instead of %" PRIu64 ": that was no faster\n", old);
    fflush(stdout);
}

/* gain says how many times as fast calls become; 0: as fast as before, with fewer resources. */
static void choose(struct tuning *t, const char *name, size_t offset, enum dt_perf_number number,
                   uint64_t value, double gain)
{
    struct dt_perf_threshold *chosen = &t->chosen[t->n++];
    uint64_t old = value_now(t, offset);
    size_t at = strlen(t->lines);
    time_t now = time(NULL);
    char host[64] = "", day[16] = "";
    struct tm tm;

    snprintf(chosen->name, sizeof chosen->name, "%s", name);
    chosen->number = (uint32_t)(number == DT_PERF_OF_RANKS ? t->launch.ranks : t->launch.hosts);
    chosen->value = gain > 0 && gain < least_gain ? old : value;
    gethostname(host, sizeof host - 1);
    if (localtime_r(&now, &tm))
        strftime(day, sizeof day, "%Y-%m-%d", &tm);
    snprintf(chosen->comment, sizeof chosen->comment, "measured on %s, %s", host, day);
    snprintf(t->lines + at, sizeof t->lines - at, "%s = %" PRIu64 "\n", name, chosen->value);
    if (dt_rank() == 0)
        tell(chosen, old, gain);
}

/* Returns for how many of the sizes a threshold selects the first algorithm. */
static size_t cut_of(const struct dt_perf_crossover *x, uint64_t value)
{
    size_t cut = 0;

    for (size_t bytes = x->from; bytes <= x->to; bytes *= 2)
        cut += x->first_of_high ? bytes < value : bytes <= value;
    return cut;
}

static dt_result_t tune_crossover(struct tuning *t, const struct dt_perf_crossover *x)
{
    const char *const lines[2] = { x->low, x->high };
    struct dt_perf_comparison c = { .launch = &t->launch,
                                    .buffers = &t->buffers,
                                    .collective = x->collective,
                                    .block = x->block,
                                    .like = comm_of(t, x->number),
                                    .before = t->lines,
                                    .lines = lines,
                                    .n = 2,
                                    .from = x->from,
                                    .to = x->to,
                                    .calls = t->calls };
    size_t n = cut_of(x, UINT64_MAX), old = cut_of(x, value_now(t, x->offset)), cut;
    dt_result_t r = dt_perf_compare(&c);

    if (r != DT_OK)
        return r;
    cut = dt_perf_cut(c.us[0], c.us[1], n);
    choose(t, x->name, x->offset, x->number,
           x->first_of_high ? x->from << cut : (x->from << cut) / 2,
           dt_perf_gain(c.us[0], c.us[1], n, old, cut));
    return DT_OK;
}

/* Connections cost memory and CPU time, so the smallest sufficient number is chosen. */
static dt_result_t tune_streams(struct tuning *t)
{
    static const uint64_t streams[DT_PERF_VARIANTS] = { 1, 2, 3, 4, 8, 16 };
    char text[DT_PERF_VARIANTS][LINE];
    const char *lines[DT_PERF_VARIANTS];
    struct dt_perf_comparison c = { .launch = &t->launch,
                                    .buffers = &t->buffers,
                                    .collective = "all_reduce",
                                    .like = DT_WORLD,
                                    .before = t->lines,
                                    .lines = lines,
                                    .n = DT_PERF_VARIANTS,
                                    .from = STREAM_BYTES,
                                    .to = STREAM_BYTES,
                                    .calls = t->calls };
    double us[DT_PERF_VARIANTS];
    size_t best, old = 0;
    dt_result_t r;

    for (size_t i = 0; i < DT_PERF_VARIANTS; i++) {
        snprintf(text[i], sizeof text[i], "net_streams = %" PRIu64, streams[i]);
        lines[i] = text[i];
        old = streams[i] <= t->now.net_streams ? i : old;
    }
    r = dt_perf_compare(&c);
    if (r != DT_OK)
        return r;
    for (size_t i = 0; i < DT_PERF_VARIANTS; i++)
        us[i] = c.us[i][0];
    best = dt_perf_enough(us, DT_PERF_VARIANTS);
    choose(t, "net_streams", offsetof(struct dt_tuning, net_streams), DT_PERF_OF_HOSTS,
           streams[best], best > old ? us[old] / us[best] : best == old);
    return DT_OK;
}

/* ---- the launch ---- */

/* Ranks may be bound to one CPU each, so this counts the CPUs of all ranks of the host. */
static dt_result_t learn_crowd(struct tuning *t)
{
    uint64_t cpus[sizeof(cpu_set_t) / 8] = { 0 };
    int n = 0;
    dt_result_t r;

    sched_getaffinity(0, sizeof cpus, (cpu_set_t *)cpus);
    r = dt_all_reduce(t->host, DT_IN_PLACE, cpus, sizeof cpus / 8, DT_U64, DT_BOR);
    for (size_t i = 0; i < sizeof cpus / 8; i++)
        n += __builtin_popcountll(cpus[i]);
    t->launch.crowded = dt_local_size() > n;
    return r == DT_OK ? dt_broadcast(DT_WORLD, &t->launch.crowded, 1, DT_U8, 0) : r;
}

/* Compares all hosts, because they may have different numbers of ranks. */
static dt_result_t learn_ranks(struct tuning *t)
{
    struct dt_perf_launch *l = &t->launch;
    int local = dt_local_size();
    uint64_t least[2] = { (uint64_t)local, dt_hostshm_room((uint32_t)local) };
    dt_result_t r;

    l->hosts = dt_perf_env_number(DT_ENV_NODES, 1);
    l->ranks = local;
    r = dt_broadcast(DT_WORLD, &l->ranks, 1, DT_I32, 0);
    if (r == DT_OK)
        r = dt_all_reduce(DT_WORLD, DT_IN_PLACE, least, 2, DT_U64, DT_MIN);
    l->width = (int)dt_layout_leaders((size_t)l->hosts, least[0], least[1] / DT_HOSTSHM_ROUNDS);
    return r;
}

static void ignore_text(void *arg, const char *text)
{
    (void)arg;
    (void)text; /* dt_init has printed it */
}

/* Every rank uses the thresholds of rank 0. */
static dt_result_t learn_thresholds(struct tuning *t)
{
    struct dt_tuning_table table = { 0 };

    if (dt_rank() == 0)
        dt_tuningfile_read(&table, ignore_text, NULL);
    dt_tuning_choose(&t->now, &table, (uint32_t)t->launch.ranks, (uint32_t)t->launch.hosts);
    return dt_broadcast(DT_WORLD, &t->now, sizeof t->now, DT_U8, 0);
}

/* Collective. */
static dt_result_t learn(struct tuning *t)
{
    const struct dt_perf_args a = { .max_bytes = DT_PERF_TUNE_BYTES };
    dt_result_t r = dt_comm_split(DT_WORLD, dt_perf_env_number(DT_ENV_NODE_RANK, 0), 0, &t->host);

    if (r == DT_OK)
        r = learn_crowd(t);
    if (r == DT_OK)
        r = learn_ranks(t);
    if (r == DT_OK)
        r = learn_thresholds(t);
    if (r == DT_OK && !dt_perf_buffers_make(&t->buffers, &a))
        r = DT_ERR_NOMEM;
    return r;
}

/* All other thresholds are measured with the chosen number of connections. */
static dt_result_t measure(struct tuning *t)
{
    const struct dt_perf_crossover *x;
    dt_result_t r = t->launch.hosts > 1 ? tune_streams(t) : DT_OK;

    for (size_t i = 0; r == DT_OK && (x = dt_perf_crossover_at(i)) != NULL; i++) {
        if (x->applies(&t->launch))
            r = tune_crossover(t, x);
    }
    return r;
}

/* ---- the file ---- */

static void tell_why(const char *path, char wrong[DT_PERF_TUNE_WRONG])
{
    if (errno == EINVAL)
        snprintf(wrong, DT_PERF_TUNE_WRONG,
                 "%.300s is not a regular file: name one with " DT_ENV_TUNING, path);
    else
        snprintf(wrong, DT_PERF_TUNE_WRONG, "%.300s: %s", path, strerror(errno));
}

/* Checks the file before the measurement, which takes minutes. */
static bool find_file(char path[DT_TUNINGFILE_PATH], char wrong[DT_PERF_TUNE_WRONG])
{
    enum dt_tuningfile_found found = dt_tuningfile_find(path);

    if (found == DT_TUNINGFILE_TOO_LONG)
        snprintf(wrong, DT_PERF_TUNE_WRONG, DT_TUNINGFILE_TOO_LONG_TEXT);
    else if (found != DT_TUNINGFILE_NAMED && !dt_tuningfile_own(path))
        snprintf(wrong, DT_PERF_TUNE_WRONG,
                 "there is no home directory: name a file with " DT_ENV_TUNING);
    else if (!dt_perf_may_write_thresholds(path))
        tell_why(path, wrong);
    return *wrong == '\0';
}

static void write_file(const struct tuning *t, char *path, char wrong[DT_PERF_TUNE_WRONG])
{
    if (dt_perf_write_thresholds(path, t->chosen, t->n))
        printf("written to %s\n", path);
    else
        tell_why(path, wrong);
}

dt_result_t dt_perf_tune(int calls, char wrong[DT_PERF_TUNE_WRONG])
{
    struct tuning t = { .calls = calls, .host = DT_COMM_NULL };
    char path[DT_TUNINGFILE_PATH];
    uint8_t found; /* from rank 0 */
    dt_result_t r = learn(&t);

    *wrong = '\0';
    found = dt_rank() != 0 || find_file(path, wrong);
    if (r == DT_OK)
        r = dt_broadcast(DT_WORLD, &found, 1, DT_U8, 0);
    if (r == DT_OK && found)
        r = measure(&t);
    if (r == DT_OK && found && t.n == 0)
        snprintf(wrong, DT_PERF_TUNE_WRONG,
                 "a job of one rank has no thresholds to measure: start more ranks");
    else if (r == DT_OK && found && dt_rank() == 0)
        write_file(&t, path, wrong);
    dt_perf_buffers_free(&t.buffers);
    if (r == DT_OK && t.host != DT_COMM_NULL)
        r = dt_comm_free(t.host);
    return r;
}
