/* What dtrun-perf accepts as right and rejects as wrong, against collectives computed here. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/perf/choice.h"
#include "cmd/perf/elements.h"
#include "cmd/perf/ops.h"
#include "cmd/perf/thresholds.h"
#include "cmd/perf/tunefile.h"
#include "runtime/base/tuning.h"
#include "runtime/kernels/dtype.h"
#include "runtime/kernels/reduce.h"
#include "tests/unit/checks.h"
#include "tests/unit/forbid.h"
#include "tests/unit/sanitized.h"
#include "tests/unit/weighed.h"

enum { COUNT = 60, MOST = 130 };

static char in[MOST][MOST * COUNT * 8], result[MOST * COUNT * 8];

/* Reduces elements from byte "at" on: all at once, as on one host, or by pairs of ranks first, as
 * on hosts of two. */
static void fold_block(const struct dt_perf_case *c, int n, size_t at, size_t elements,
                       bool by_pairs)
{
    static char sums[MOST][2 * COUNT * 8];
    const void *src[MOST];
    struct dt_fold f = { .src = src, .count = elements, .divisor = 1 };
    size_t m = 0;

    assert_in_range(elements, 0, 2 * COUNT);

    for (int rank = 0; rank < n; rank += by_pairs ? 2 : 1) {
        if (!by_pairs || rank + 1 == n) {
            src[m++] = in[rank] + at;
            continue;
        }
        const void *pair[] = { in[rank] + at, in[rank + 1] + at };
        struct dt_fold of_pair = {
            .dst = sums[m], .src = pair, .n = 2, .count = elements, .divisor = 1
        };
        dt_fold(&of_pair, c->dtype, c->op);
        src[m] = sums[m];
        m++;
    }
    f.dst = result;
    f.n = m;
    f.divisor = c->op == DT_AVG ? n : 1;
    dt_fold(&f, c->dtype, c->op);
}

static void weigh_all(const struct dt_perf_case *c, int n)
{
    static long double room[MOST][COUNT];
    long double *v[MOST] = { NULL };

    for (int rank = 0; rank < n; rank++) {
        v[rank] = room[rank];
        for (size_t i = 0; i < COUNT; i++)
            v[rank][i] = weighed_get(in[rank], i, c->dtype);
    }
    weighed_combine(v, (size_t)n, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        weighed_put(result, i, c->dtype, (double)room[0][i]);
}

/* Returns the elements of the rank's input that precede a block of it. */
static size_t before(const struct dt_perf_op *op, int rank, int block, int n)
{
    size_t elements = 0;

    for (int i = 0; i < block; i++)
        elements += dt_perf_block_count(op, rank, i, n, COUNT);
    return elements;
}

/* Computes the result of the collective for rank me. (tests/unit/faults/everycall.c compares the
 * sources of blocks with the library.) */
static void do_it(const struct dt_perf_op *op, const struct dt_perf_case *c, int me, int n,
                  bool by_pairs)
{
    size_t size = dt_dtype_size(c->dtype), at = 0;

    if (c->op == DT_ADASUM) {
        weigh_all(c, n);
        return;
    }
    for (int block = 0; block < (op->many_out ? n : 1); block++) {
        struct dt_perf_source s = op->source(me, n, c->root, block);
        size_t elements = dt_perf_block_count(op, s.rank, me, n, COUNT);
        size_t from = before(op, s.rank, s.block, n) * size;

        if (op->reduces)
            fold_block(c, s.rank + 1, from, elements, by_pairs);
        else
            memcpy(result + at, in[s.rank] + from, elements * size);
        at += elements * size;
    }
}

/* Changes every third element, and checks that exactly these are counted. */
static void spoil_and_count(const struct dt_perf_op *op, const struct dt_perf_case *c, int me,
                            int n)
{
    size_t size = dt_dtype_size(c->dtype), spoilt = 0;
    size_t elements =
        op->many_out ? COUNT * (size_t)n : dt_perf_block_count(op, c->root, me, n, COUNT);

    for (size_t i = me % 3; i < elements; i += 3) {
        result[i * size + size - 1] ^= 4;
        spoilt++;
    }
    assert_int_equal(dt_perf_wrong(op, c, result, COUNT, me, n), spoilt);
}

static void try_case(const struct dt_perf_op *op, const struct dt_perf_case *c, int n)
{
    size_t elements = COUNT * (op->many_in || op->block_count ? (size_t)n : 1); /* enough */

    for (int rank = 0; rank < n; rank++)
        dt_perf_fill(op, c, in[rank], elements, rank, n);
    for (int me = 0; me < n; me += 1 + n / 3) {
        for (int by_pairs = 0; by_pairs < 2; by_pairs++) {
            do_it(op, c, me, n, by_pairs);
            assert_int_equal(dt_perf_wrong(op, c, result, COUNT, me, n), 0);
        }
        spoil_and_count(op, c, me, n);
    }
}

static bool is_made(const struct dt_perf_op *op, const struct dt_perf_case *c, int n)
{
    return dt_perf_combines(c->op, c->dtype) &&
           (c->op != DT_ADASUM || (op->weighs && (n & (n - 1)) == 0));
}

static void wrong_elements_are_counted_exactly(void **state)
{
    static const int sizes[] = { 1, 2, 4, 5, 16, 28, 42, MOST };

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (size_t k = 0; dt_perf_op_at(k); k++) {
            const struct dt_perf_op *op = dt_perf_op_at(k);

            for (int type = 0; type < DT_DTYPE_MAX && !op->empty; type++) {
                for (int o = 0; o < (op->reduces ? DT_OP_MAX : 1); o++) {
                    struct dt_perf_case c = { .dtype = (dt_dtype_t)type,
                                              .op = (dt_op_t)o,
                                              .root = sizes[i] / 2 };

                    if (SANITIZED && sizes[i] > 16 && (k + (size_t)type + (size_t)o) % 4)
                        continue;
                    if (is_made(op, &c, sizes[i]))
                        try_case(op, &c, sizes[i]);
                }
            }
        }
    }
}

/* In the v forms, whatever the mean size. */
static void blocks_are_uneven_and_add_up(void **state)
{
    enum { N = 7 };

    (void)state;
    for (size_t k = 0; dt_perf_op_at(k); k++) {
        const struct dt_perf_op *op = dt_perf_op_at(k);

        for (size_t count = 0; count < 40 && op->block_count; count++) {
            size_t given = 0, taken = 0, most = 0;

            for (int i = 0; i < N; i++) {
                size_t gives = dt_perf_block_count(op, 2, i, N, count);
                size_t takes = dt_perf_block_count(op, i, 2, N, count);

                given += gives;
                taken += takes;
                most = gives > most ? gives : takes > most ? takes : most;
            }
            assert_true(!op->many_in || given == N * count);
            assert_true(!op->many_out || taken == N * count);
            assert_true(count < N ? most >= count : most > count + count / 2);
        }
    }
    assert_int_equal(dt_perf_block_count(dt_perf_op_find("all_gatherv"), 0, 1, N, 40), 0);
    assert_int_equal(dt_perf_block_count(dt_perf_op_find("all_to_allv"), 1, 1, N, 40), 0);
    assert_int_equal(dt_perf_block_count(dt_perf_op_find("scatterv"), 0, 0, 1, 40), 40);
}

/* Hosts with 3, 1 and 2 ranks, and two hosts whose ranks take turns. */
static void bytes_between_hosts_are_counted(void **state)
{
    static const int host[6] = { 0, 0, 0, 1, 2, 2 }, turns[6] = { 0, 1, 0, 1, 0, 1 };
    static const struct dt_perf_layout blocks = { 6, 3, host }, mixed = { 6, 2, turns };
    static const struct {
        const char *name;
        int root;
        double blocks, mixed; /* for 5 elements */
    } cases[] = {
        { "all_reduce", 0, 2.0 * 2 / 3 * 5, 5 },
        { "reduce", 3, 5, 5 },
        { "broadcast", 5, 5, 5 },
        { "all_gather", 0, 25, 15 },
        { "reduce_scatter", 0, 25, 15 },
        { "all_gatherv", 0, 24, 18 }, /* the blocks are 0, 2 ... 10 */
        { "all_to_all", 0, 45, 45 },
        { "all_to_allv", 0, 54, 54 }, /* two ranks exchange 12 */
        { "gather", 0, 15, 15 },
        { "gather", 3, 25, 15 },
        { "scatter", 4, 20, 15 },
        { "gatherv", 1, 24, 12 },
        { "scatterv", 5, 12, 12 },
        { "scatterv", 3, 24, 12 },
        { "sendrecv", 0, 5, 15 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct dt_perf_op *op = dt_perf_op_find(cases[i].name);

        assert_true(fabs(op->leaves(op, &blocks, cases[i].root, 5) - cases[i].blocks) < 1e-9);
        assert_true(fabs(op->leaves(op, &mixed, cases[i].root, 5) - cases[i].mixed) < 1e-9);
    }
}

/* Every input read and every output written, by four ranks, by size. */
static void bytes_through_memory_are_counted(void **state)
{
    static const struct {
        const char *name;
        double moved;
    } cases[] = {
        { "all_reduce", 4 + 4 }, { "reduce", 4 + 1 },      { "broadcast", 1 + 4 },
        { "all_gather", 1 + 4 }, { "all_gatherv", 1 + 4 }, { "reduce_scatter", 4 + 1 },
        { "all_to_all", 4 + 4 }, { "all_to_allv", 4 + 4 }, { "reduce_scatterv", 4 + 1 },
        { "gather", 1 + 1 },     { "gatherv", 1 + 1 },     { "scatter", 1 + 1 },
        { "scatterv", 1 + 1 },   { "sendrecv", 4 + 4 },    { "barrier", 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true(fabs(dt_perf_op_find(cases[i].name)->moved(4) - cases[i].moved) < 1e-9);
}

/* As in nccl-tests' doc/PERFORMANCE.md, for four ranks. */
static void bus_bandwidths_are_those_of_nccl_tests(void **state)
{
    static const struct {
        const char *name;
        double factor;
    } cases[] = {
        { "all_reduce", 1.5 }, { "reduce", 1 },        { "broadcast", 1 },
        { "all_gather", .75 }, { "all_gatherv", .75 }, { "reduce_scatter", .75 },
        { "all_to_all", .75 }, { "all_to_allv", .75 }, { "reduce_scatterv", .75 },
        { "gather", .75 },     { "gatherv", .75 },     { "scatter", .75 },
        { "scatterv", .75 },   { "sendrecv", 1 },      { "barrier", 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true(fabs(dt_perf_op_find(cases[i].name)->bus_factor(4) - cases[i].factor) < 1e-9);
}

static void a_block_of_another_rank_is_wrong(void **state)
{
    const struct dt_perf_case c = { .dtype = DT_U8, .op = DT_SUM };
    const struct dt_perf_op *op = dt_perf_op_find("all_gather");

    (void)state;
    for (int rank = 0; rank < 2; rank++)
        dt_perf_fill(op, &c, in[rank], COUNT, rank, 2);
    memcpy(result, in[1], COUNT);
    memcpy(result + COUNT, in[0], COUNT);
    assert_int_equal(dt_perf_wrong(op, &c, result, COUNT, 0, 2), 2 * COUNT);
}

static void names_are_found_in_any_spelling(void **state)
{
    static const struct {
        const char *written, *name;
    } cases[] = {
        { "all_reduce", "all_reduce" },
        { "all-reduce", "all_reduce" },
        { "AllReduce", "all_reduce" },
        { "all_reduce_perf", "all_reduce" },
        { "alltoall_perf", "all_to_all" },
        { "reducescatter", "reduce_scatter" },
        { "sendrecv_perf", "sendrecv" },
        { "reduce", "reduce" },
        { "reduce_", NULL },
        { "reduces", NULL },
        { "all_reduce_perfect", NULL },
        { "", NULL },
        { "_perf", NULL },
        { "redu", NULL },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct dt_perf_op *op = dt_perf_op_find(cases[i].written);

        if (cases[i].name)
            assert_string_equal(op->name, cases[i].name);
        else
            assert_null(op);
    }
}

/* ---- tuning ---- */

static void a_cut_gives_each_algorithm_its_sizes(void **state)
{
    static const double even[4] = { 2, 2, 2, 2 };
    static const struct {
        double low[4];
        size_t cut;
    } cases[] = {
        { { 1, 1, 1, 1 }, 4 }, { { 3, 3, 3, 3 }, 0 },   { { 1, 1, 3, 3 }, 2 },
        { { 1, 5, 1, 3 }, 1 }, { { 1, 2.2, 1, 3 }, 3 }, /* one that was disturbed */
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(dt_perf_cut(cases[i].low, even, 4), cases[i].cut);
    assert_true(fabs(dt_perf_gain(cases[0].low, even, 4, 0, 4) - 2) < 1e-9);
    assert_true(fabs(dt_perf_gain(cases[0].low, even, 4, 1, 3) - 2) < 1e-9);
    assert_true(fabs(dt_perf_gain(cases[1].low, even, 4, 1, 0) - 1.5) < 1e-9);
    assert_true(fabs(dt_perf_gain(cases[0].low, even, 4, 2, 2) - 1) < 1e-9);
}

/* Something may slow the machine for a while, or disturb one call of either algorithm. */
static void algorithms_are_compared_pair_by_pair(void **state)
{
    static const double way[] = { 2, 8, 2, 90, 8 }, other[] = { 1, 4, 1, 4, 4 };
    double times[] = { 5, 4, 9, 1, 7 };

    (void)state;
    assert_true(fabs(dt_perf_ratio(way, other, 5) - 2) < 1e-9);
    assert_true(fabs(dt_perf_ratio(other, way, 5) - 0.5) < 1e-9);
    assert_true(fabs(dt_perf_ratio(way, other, 4) - 2) < 1e-9);
    assert_true(fabs(dt_perf_ratio(way + 2, other + 1, 2) - (0.5 + 90) / 2) < 1e-9);
    assert_true(fabs(dt_perf_undisturbed(times, 5) - 4) < 1e-9);
}

static void the_smallest_sufficient_budget_is_found(void **state)
{
    static const double us[] = { 9, 3, 2.05, 2, 2.1 };

    (void)state;
    assert_int_equal(dt_perf_enough(us, 5), 2);
    assert_int_equal(dt_perf_enough(us, 2), 1);
    assert_int_equal(dt_perf_enough(us + 3, 2), 0);
}

static void thresholds_replace_old_ones(void **state)
{
    static const struct dt_perf_threshold set[] = { { "shm_small", 2, 4096, "here" },
                                                    { "net_leader", 0, 1, "there" } };
    static const struct {
        const char *old, *fresh; /* before the two runs */
    } cases[] = {
        { NULL, "# Thresholds of dtrun's collectives; dtrun-tuning(5) has their names.\n" },
        { "", "" },
        { "# mine\n\nshm_small = 7 # for all\n", "# mine\n\nshm_small = 7 # for all\n" },
        { "shm_small[2] = 7\n shm_small [2]=8\nshm_small[22] = 9", "shm_small[22] = 9\n" },
        { "net_leader=4\nnet_leaders = 4\n#net_leader = 4\n",
          "net_leaders = 4\n#net_leader = 4\n" },
        { "net_leader[2]=4\nwrong\n", "net_leader[2]=4\nwrong\n" },
    };
    char want[400];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = dt_perf_merge(cases[i].old, set, 2);

        snprintf(want, sizeof want, "%sshm_small[2] = 4096 # here\nnet_leader = 1 # there\n",
                 cases[i].fresh);
        assert_string_equal(text, want);
        free(text);
    }
}

static void a_file_that_cannot_be_replaced_stays(void **state)
{
    static const struct dt_perf_threshold set[] = { { "net_leader", 0, 1, "" } };
    char directory[] = "/proc/self/dtrun/tuning";

    (void)state;
    errno = 0;
    assert_false(dt_perf_write_thresholds(directory, set, 1));
    assert_int_not_equal(errno, 0);
}

/* fdopen fails, as if no memory were left for the stream. */
static void an_unfinished_file_is_removed(void **state)
{
    static const struct dt_perf_threshold set[] = { { "net_leader", 0, 1, "" } };
    char directory[] = "/tmp/dtrun-perf.XXXXXX", path[64];
    int status, before;
    pid_t child;

    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/tuning", directory);
    child = fork();
    if (child == 0) {
        before = dup(STDERR_FILENO);
        close(before);
        _exit(!(forbid(SYS_fcntl, EMFILE) && !dt_perf_write_thresholds(path, set, 1) &&
                errno == EMFILE && dup(STDERR_FILENO) == before));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(rmdir(directory), 0);
}

static void a_device_is_not_replaced(void **state)
{
    static const struct dt_perf_threshold set[] = { { "net_leader", 0, 1, "" } };
    char directory[] = "/tmp/dtrun-perf.XXXXXX", path[64];
    struct stat st;

    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/null", directory);
    if (mknod(path, S_IFCHR | 0600, makedev(1, 3)) != 0) {
        rmdir(directory);
        print_message("making devices is not allowed\n");
        skip();
    }
    errno = 0;
    assert_false(dt_perf_write_thresholds(path, set, 1));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(directory), 0);
}

/* Opening a pipe without a writer would wait for ever. */
static void what_is_not_a_file_is_reported(void **state)
{
    static const struct dt_perf_threshold set[] = { { "net_leader", 0, 1, "" } };
    char directory[] = "/tmp/dtrun-perf.XXXXXX", path[64];

    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/pipe", directory);
    assert_int_equal(mkfifo(path, 0600), 0);
    errno = 0;
    assert_false(dt_perf_write_thresholds(path, set, 1));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(unlink(path), 0);
    errno = 0;
    assert_false(dt_perf_write_thresholds(directory, set, 1));
    assert_int_equal(errno, EISDIR);
    assert_int_equal(rmdir(directory), 0);
}

static void a_link_to_the_file_stays(void **state)
{
    static const struct dt_perf_threshold set[] = { { "net_leader", 0, 1, "here" } };
    char directory[] = "/tmp/dtrun-perf.XXXXXX", path[64], target[64], text[64] = "";
    struct stat st;
    FILE *f;

    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/tuning", directory);
    snprintf(target, sizeof target, "%s/target", directory);
    assert_int_equal(close(creat(target, 0600)), 0);
    assert_int_equal(symlink("target", path), 0);
    assert_true(dt_perf_write_thresholds(path, set, 1));
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    f = fopen(target, "r");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof text, f));
    fclose(f);
    assert_string_equal(text, "net_leader = 1 # here\n");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(unlink(target), 0);
    assert_int_equal(rmdir(directory), 0); /* nothing else is there */
}

/* ---- percentiles ---- */

static void percentiles_are_measured_values(void **state)
{
    double values[1000];

    (void)state;
    for (int i = 0; i < 1000; i++)
        values[i] = i + 1;
    assert_true(dt_perf_percentile(values, 1, 50) == 1 && dt_perf_percentile(values, 1, 99) == 1);
    assert_true(dt_perf_percentile(values, 3, 50) == 2 && dt_perf_percentile(values, 3, 99) == 3);
    assert_true(dt_perf_percentile(values, 20, 50) == 10);
    assert_true(dt_perf_percentile(values, 100, 99) == 99);
    assert_true(dt_perf_percentile(values, 101, 99) == 100);
    assert_true(dt_perf_percentile(values, 1000, 50) == 500);
    assert_true(dt_perf_percentile(values, 1000, 99) == 990);
}

/* ---- which thresholds ---- */

enum { THRESHOLDS = sizeof(struct dt_tuning) / sizeof(uint64_t) };

static void refuse(void *arg, unsigned line, const char *why)
{
    (void)arg;
    fail_msg("line %u: %s", line, why);
}

/* The built-in values, changed by these lines. */
static struct dt_tuning tuned(const char *lines)
{
    struct dt_tuning t = dt_tuning_builtin;
    struct dt_tuning_table table = { 0 };

    dt_tuning_read(&table, lines, strlen(lines), refuse, NULL);
    dt_tuning_add(&t, &table, 2, 2);
    return t;
}

static uint64_t value_at(const struct dt_tuning *t, size_t offset)
{
    return ((const uint64_t *)t)[offset / sizeof(uint64_t)];
}

static void count_measured(const struct dt_perf_launch *l, int measured[THRESHOLDS])
{
    for (size_t i = 0; dt_perf_crossover_at(i); i++) {
        const struct dt_perf_crossover *x = dt_perf_crossover_at(i);

        measured[x->offset / sizeof(uint64_t)] += x->applies(l);
    }
}

static void every_crossover_is_measured_once(void **state)
{
    bool ever[THRESHOLDS] = { [offsetof(struct dt_tuning, net_streams) / sizeof(uint64_t)] = true };

    (void)state;
    for (int of = 0; of < 20 * 3 * 2; of++) {
        int hosts = 1 + of / 6, ranks = 1 + of / 2 % 3;
        struct dt_perf_launch l = {
            .hosts = hosts, .ranks = ranks, .width = hosts > 8 ? 1 : ranks, .crowded = of % 2
        };
        int measured[THRESHOLDS] = { 0 }, all = 0;

        count_measured(&l, measured);
        for (size_t i = 0; i < THRESHOLDS; i++) {
            assert_in_range(measured[i], 0, 1);
            ever[i] = ever[i] || measured[i];
            all += measured[i];
        }
        assert_int_equal(all > 0, ranks > 1 || (hosts > 1 && hosts <= 16));
    }
    for (size_t i = 0; i < THRESHOLDS; i++)
        assert_true(ever[i]);
}

/* All sizes are up to a threshold after which the second algorithm takes over, or below a threshold
 * from which on the second is used. */
static void lines_force_either_algorithm(void **state)
{
    (void)state;
    for (size_t i = 0; dt_perf_crossover_at(i); i++) {
        const struct dt_perf_crossover *x = dt_perf_crossover_at(i);
        struct dt_tuning low = tuned(x->low), high = tuned(x->high);

        assert_true(value_at(&low, x->offset) >= x->to + x->first_of_high);
        assert_true(value_at(&high, x->offset) < x->from + x->first_of_high);
    }
}

static void names_are_those_of_the_values(void **state)
{
    char line[100];

    (void)state;
    for (size_t i = 0; dt_perf_crossover_at(i); i++) {
        snprintf(line, sizeof line, "%s = 7", dt_perf_crossover_at(i)->name);
        struct dt_tuning t = tuned(line);
        assert_int_equal(value_at(&t, dt_perf_crossover_at(i)->offset), 7);
    }
}

static void buffers_hold_all_sizes(void **state)
{
    static const struct dt_perf_launch l = { .hosts = 2, .ranks = 8, .width = 8, .crowded = true };

    (void)state;
    for (size_t i = 0; dt_perf_crossover_at(i); i++) {
        const struct dt_perf_crossover *x = dt_perf_crossover_at(i);

        assert_true((x->block ? x->block(&l, x->to) : x->to) <= DT_PERF_TUNE_BYTES);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKS("21", wrong_elements_are_counted_exactly),
        cmocka_unit_test(blocks_are_uneven_and_add_up),
        cmocka_unit_test(bytes_between_hosts_are_counted),
        cmocka_unit_test(bytes_through_memory_are_counted),
        cmocka_unit_test(bus_bandwidths_are_those_of_nccl_tests),
        cmocka_unit_test(percentiles_are_measured_values),
        cmocka_unit_test(a_block_of_another_rank_is_wrong),
        cmocka_unit_test(names_are_found_in_any_spelling),
        cmocka_unit_test(a_cut_gives_each_algorithm_its_sizes),
        cmocka_unit_test(algorithms_are_compared_pair_by_pair),
        cmocka_unit_test(the_smallest_sufficient_budget_is_found),
        cmocka_unit_test(thresholds_replace_old_ones),
        cmocka_unit_test(a_file_that_cannot_be_replaced_stays),
        cmocka_unit_test(an_unfinished_file_is_removed),
        cmocka_unit_test(a_device_is_not_replaced),
        cmocka_unit_test(what_is_not_a_file_is_reported),
        cmocka_unit_test(a_link_to_the_file_stays),
        cmocka_unit_test(every_crossover_is_measured_once),
        cmocka_unit_test(lines_force_either_algorithm),
        cmocka_unit_test(names_are_those_of_the_values),
        cmocka_unit_test(buffers_hold_all_sizes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
