/* dtrun-perf: measures collectives. It runs as ranks: dtrun -np 4 dtrun-perf all_reduce */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/perf/memory.h"
#include "cmd/perf/network.h"
#include "cmd/perf/raw.h"
#include "cmd/perf/table.h"
#include "cmd/perf/tune.h"
#include "runtime/wire/env.h"

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

static int fail(const char *what)
{
    fprintf(stderr, "dtrun-perf: %s\n", what);
    return EXIT_FAILED;
}

static int fail_usage(const char *what)
{
    fprintf(stderr, "dtrun-perf: %s; --help lists everything\n", what);
    return EXIT_USAGE;
}

/* An error without a text from the library is DT_ERR_NOMEM of this program itself. */
static int fail_with(dt_result_t r, const char *no_memory)
{
    dt_error_info_t last = { .size = sizeof last };

    dt_last_error_info(&last);
    return fail(last.code == r ? last.message : no_memory);
}

static dt_result_t gather_ranks(struct dt_perf_rank *ranks)
{
    struct dt_perf_rank *mine = &ranks[dt_rank()];
    size_t bytes = sizeof *ranks * (size_t)dt_size();

    gethostname(mine->host, sizeof mine->host - 1);
    mine->pid = getpid();
    mine->node = dt_perf_env_number(DT_ENV_NODE_RANK, 0);
    snprintf(mine->memory, sizeof mine->memory, "%s", dt_perf_memory_name());
    return dt_all_reduce(DT_WORLD, DT_IN_PLACE, ranks, bytes, DT_U8, DT_SUM);
}

/* What is measured, and where the results go. */
struct session {
    const struct dt_perf_op *op;
    struct dt_perf_op raw; /* with --raw: the same collective by NCCL itself */
    const struct dt_perf_args *a;
    struct dt_perf_layout layout;
    struct dt_perf_buffers buffers;
    struct dt_perf_table table; /* only rank 0 prints it; all ranks count wrong elements */
};

/* Computes the lower bound. On one host the bound is the memory traffic of its ranks. With several
 * hosts, whose ranks use memory and network at the same time, it is the traffic that must leave or
 * enter the busiest host. */
static dt_result_t compute_bound(const struct session *s, struct dt_perf_row *row)
{
    const struct dt_perf_case *what = &row->what;
    double per_byte = 0, gbits = s->table.network, size = (double)dt_dtype_size(what->dtype);
    int ranks = dt_size();
    dt_result_t r;

    if (gbits > 0) {
        row->bound_us =
            s->op->leaves(s->op, &s->layout, what->root, row->count) * size * 8e-3 / gbits;
        return DT_OK;
    }
    if (dt_perf_memory_is_gpu())
        return DT_OK;
    r = dt_perf_memory_us(&s->buffers, row->bytes, &per_byte);
    row->bound_us = s->op->moved(ranks) / ranks * (double)row->bytes * per_byte;
    return r;
}

static dt_result_t measure_row(struct session *s, struct dt_perf_row *row)
{
    dt_result_t r = compute_bound(s, row);

    if (r == DT_OK)
        r = dt_perf_measure(s->op, &row->what, s->a, &s->buffers, row->count, false,
                            &row->out_of_place);
    if (r == DT_OK)
        r = dt_perf_measure(s->op, &row->what, s->a, &s->buffers, row->count, true, &row->in_place);
    if (r == DT_OK && s->a->raw && dt_perf_raw_combines(s->op, &row->what))
        r = dt_perf_measure(&s->raw, &row->what, s->a, &s->buffers, row->count, false, &row->raw);
    if (r == DT_OK)
        dt_perf_table_row(&s->table, row);
    return r;
}

static dt_result_t measure_sizes(struct session *s, const struct dt_perf_case *what)
{
    const struct dt_perf_args *a = s->a;
    dt_result_t r = DT_OK;

    for (size_t bytes = a->min_bytes; bytes <= a->max_bytes && r == DT_OK;
         bytes = s->op->empty ? SIZE_MAX : dt_perf_next_size(a, bytes)) {
        struct dt_perf_row row = { .what = *what, .count = dt_perf_count(s->op, what, bytes) };

        row.bytes = dt_perf_bytes(s->op, what, row.count);
        r = measure_row(s, &row);
    }
    return r;
}

/* Whether an option selects this value. If the option does not apply to the collective, only value
 * 0 is measured. */
static bool is_selected(int option, int value, bool applies)
{
    return applies ? option == DT_PERF_ALL || option == value : value == 0;
}

static dt_result_t measure_roots(struct session *s, struct dt_perf_case what)
{
    dt_result_t r = DT_OK;

    for (what.root = 0; what.root < dt_size() && r == DT_OK; what.root++) {
        if (is_selected(s->a->root, what.root, s->op->has_root))
            r = measure_sizes(s, &what);
    }
    return r;
}

/* -o all means the operations of nccl-tests and the bitwise ones. */
static dt_result_t measure_all(struct session *s)
{
    int ops = s->a->op == DT_ADASUM ? DT_OP_MAX : DT_FOLD_MAX;
    dt_result_t r = DT_OK;

    for (int type = 0; type < DT_DTYPE_MAX; type++) {
        for (int op = 0; op < ops && r == DT_OK; op++) {
            struct dt_perf_case what = { .dtype = (dt_dtype_t)type, .op = (dt_op_t)op };

            if (is_selected(s->a->dtype, type, !s->op->empty) &&
                is_selected(s->a->op, op, s->op->reduces) && dt_perf_combines(what.op, what.dtype))
                r = measure_roots(s, what);
        }
    }
    return r;
}

/* Does nothing if no data go between hosts. */
static dt_result_t find_network(struct session *s)
{
    if (s->layout.hosts <= 1 || s->op->empty)
        return DT_OK;
    s->table.network = s->a->link;
    return s->a->link > 0 ? DT_OK : dt_perf_network_gbits(&s->table.network);
}

static dt_result_t measure_job(struct session *s)
{
    struct dt_perf_rank *ranks = calloc((size_t)dt_size(), sizeof *ranks);
    int host[dt_size()];
    dt_result_t r;

    if (!ranks)
        return DT_ERR_NOMEM;
    r = gather_ranks(ranks);
    s->layout = (struct dt_perf_layout){ dt_size(), dt_perf_env_number(DT_ENV_NODES, 1), host };
    for (int i = 0; r == DT_OK && i < dt_size(); i++)
        host[i] = (int)ranks[i].node;
    if (r == DT_OK)
        r = find_network(s);
    if (r == DT_OK)
        dt_perf_table_begin(&s->table, ranks);
    if (r == DT_OK)
        r = measure_all(s);
    if (r == DT_OK)
        dt_perf_table_end(&s->table);
    free(ranks);
    return r;
}

/* Opens the outputs of rank 0. Returns false if that fails. */
static bool open_outputs(struct session *s)
{
    const char *json = s->a->json;

    if (!json || strcmp(json, "-") != 0)
        s->table.text = stdout;
    if (json)
        s->table.json = s->table.text ? fopen(json, "w") : stdout;
    return !json || s->table.json;
}

static bool close_outputs(struct session *s)
{
    FILE *json = s->table.json;
    bool good = fflush(stdout) == 0;

    if (json && json != stdout)
        good = fclose(json) == 0 && good;
    return good;
}

/* Collective. Returns true also if --raw was not given. */
static bool open_raw(struct session *s)
{
    char text[DT_PERF_RAW_TEXT];

    if (!s->a->raw)
        return true;
    dt_perf_raw_find(&s->raw, s->op);
    if (dt_perf_raw_open(text))
        return true;
    if (*text)
        fail(text);
    return false;
}

static int run(const struct dt_perf_op *op, const struct dt_perf_args *a)
{
    struct session s = { .op = op, .a = a };
    bool opened = true;
    char text[200];
    dt_result_t r;

    s.table = (struct dt_perf_table){ .op = op, .args = a, .ranks = dt_size() };
    if (dt_rank() == 0)
        opened = open_outputs(&s);
    if (!opened) {
        snprintf(text, sizeof text, "--json %.100s: %s", a->json, strerror(errno));
        fail(text);
    }
    r = dt_broadcast(DT_WORLD, &opened, 1, DT_U8, 0);
    if (r == DT_OK && !opened)
        return EXIT_FAILED;
    if (r == DT_OK && !open_raw(&s))
        return EXIT_FAILED;
    if (r == DT_OK && !dt_perf_buffers_make(&s.buffers, a))
        r = DT_ERR_NOMEM;
    if (r == DT_OK)
        r = measure_job(&s);
    if (r != DT_OK)
        fail_with(r, "out of memory; choose a smaller -e");
    dt_perf_buffers_free(&s.buffers);
    dt_perf_raw_close();
    if (!close_outputs(&s))
        return fail("the results could not be written");
    return r == DT_OK && s.table.wrong == 0 ? EXIT_SUCCESS : EXIT_FAILED;
}

static int tune(int calls)
{
    char wrong[DT_PERF_TUNE_WRONG];
    dt_result_t r = dt_perf_tune(calls, wrong);

    if (r != DT_OK)
        return fail_with(r, "out of memory; --tune needs 128 MiB for each rank");
    return *wrong ? fail(wrong) : EXIT_SUCCESS;
}

/* Returns NULL, with what is wrong in text, if there is no such collective. */
static const struct dt_perf_op *find_op(const struct dt_perf_args *a, char text[DT_PERF_ARGS_ERROR])
{
    const struct dt_perf_op *op = dt_perf_op_find(a->collective);
    struct dt_perf_op raw;

    if (!op)
        snprintf(text, DT_PERF_ARGS_ERROR, "there is no collective %.40s", a->collective);
    else if (a->raw && !dt_perf_raw_find(&raw, op))
        snprintf(text, DT_PERF_ARGS_ERROR, "--raw: NCCL has no %s of its own", op->name);
    else if (a->op == DT_ADASUM && op->reduces && !op->weighs)
        snprintf(text, DT_PERF_ARGS_ERROR, "-o adasum is for all_reduce, not for %s", op->name);
    else
        return op;
    return NULL;
}

/* Returns whether the job has the ranks that the arguments require; otherwise text says what is
 * wrong. */
static bool fits_job(const struct dt_perf_op *op, const struct dt_perf_args *a,
                     char text[DT_PERF_ARGS_ERROR])
{
    int n = dt_size();

    if (a->root >= n)
        snprintf(text, DT_PERF_ARGS_ERROR, "--root: there are ranks 0 to %d", n - 1);
    else if (op && op->weighs && a->op == DT_ADASUM && (n & (n - 1)))
        snprintf(text, DT_PERF_ARGS_ERROR, "--op adasum: %d ranks are not a power of two", n);
    else
        return true;
    return false;
}

/* dt_init warns of a file that is missing, as if --tune were not about to write it. */
static dt_result_t init_without_file(void)
{
    const char *path = getenv(DT_ENV_TUNING);
    char *absent = path && access(path, F_OK) < 0 && errno == ENOENT ? strdup(path) : NULL;
    dt_result_t r;

    if (absent)
        setenv(DT_ENV_TUNING, "", 1);
    r = dt_init();
    if (absent)
        setenv(DT_ENV_TUNING, absent, 1);
    free(absent);
    return r;
}

int main(int argc, char **argv)
{
    struct dt_perf_args a;
    const struct dt_perf_op *op = NULL; /* stays NULL with --tune */
    char text[DT_PERF_ARGS_ERROR], why[DT_PERF_MEMORY_TEXT];
    int status;

    if (dt_perf_args_parse(&a, argc, argv, text))
        return fail_usage(text);
    if (a.help) {
        dt_perf_args_help();
        return EXIT_SUCCESS;
    }
    if (a.version) {
        printf("dtrun-perf %s\n", PACKAGE_VERSION);
        return EXIT_SUCCESS;
    }
    if (!a.tune && !(op = find_op(&a, text)))
        return fail_usage(text);
    if ((a.tune ? init_without_file() : dt_init()) != DT_OK)
        return fail(dt_last_error());
    if (a.gpu && !dt_perf_memory_use_gpu(why))
        return fail(why);
    if (!fits_job(op, &a, text)) {
        if (dt_rank() == 0)
            fprintf(stderr, "dtrun-perf: %s\n", text);
        dt_finalize();
        return EXIT_USAGE;
    }
    status = op ? run(op, &a) : tune(a.iterations);
    if (dt_finalize() != DT_OK && status == EXIT_SUCCESS)
        return fail(dt_last_error());
    return status;
}
