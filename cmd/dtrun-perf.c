/* dtrun-perf: measures collectives. It runs as ranks: dtrun -np 4 dtrun-perf all_reduce */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/perf/table.h"
#include "runtime/wire/env.h"

enum { EXIT_WRONG = 1, EXIT_USAGE = 2 };

static int fail(const char *what)
{
    fprintf(stderr, "dtrun-perf: %s\n", what);
    return EXIT_WRONG;
}

static dt_result_t gather_ranks(struct dt_perf_rank *ranks)
{
    struct dt_perf_rank *mine = &ranks[dt_rank()];
    size_t bytes = sizeof *ranks * (size_t)dt_size();

    gethostname(mine->host, sizeof mine->host - 1);
    mine->pid = getpid();
    return dt_all_reduce(DT_WORLD, DT_IN_PLACE, ranks, bytes, DT_U8, DT_SUM);
}

/* On one host its memory has to carry what the ranks move; with several, whose ranks share their
 * memory's time with the network's, what leaves each host. */
static dt_result_t bound(const struct dt_perf_op *op, const struct dt_perf_args *a,
                         const struct dt_perf_buffers *b, size_t bytes, double *us)
{
    const char *nodes = getenv(DT_ENV_NODES);
    int hosts = nodes ? atoi(nodes) : 1, ranks = dt_size();
    double per_byte;
    dt_result_t r;

    if (hosts > 1) {
        *us = a->link > 0 ? op->bus_factor(hosts) * (double)bytes * 8e-3 / a->link : 0;
        return DT_OK;
    }
    r = dt_perf_memory_us(b, bytes, &per_byte);
    *us = op->moved(ranks) / ranks * (double)bytes * per_byte;
    return r;
}

static dt_result_t measure_row(const struct dt_perf_op *op, const struct dt_perf_args *a,
                               const struct dt_perf_buffers *b, struct dt_perf_row *row)
{
    dt_result_t r = bound(op, a, b, row->bytes, &row->bound_us);

    if (r == DT_OK)
        r = dt_perf_measure(op, a, b, row->count, false, &row->out_of_place);
    if (r == DT_OK)
        r = dt_perf_measure(op, a, b, row->count, true, &row->in_place);
    return r;
}

static dt_result_t measure_all(struct dt_perf_table *t, const struct dt_perf_buffers *b)
{
    const struct dt_perf_args *a = t->args;
    dt_result_t r = DT_OK;

    for (size_t bytes = a->min_bytes; bytes <= a->max_bytes && r == DT_OK;
         bytes = dt_perf_next_size(a, bytes)) {
        size_t size = dt_dtype_size(a->dtype), count = bytes / size;
        struct dt_perf_row row = { .bytes = count * size, .count = count };

        r = measure_row(t->op, a, b, &row);
        if (r == DT_OK && dt_rank() == 0)
            dt_perf_table_row(t, &row);
        t->wrong += dt_rank() ? row.out_of_place.wrong + row.in_place.wrong : 0;
    }
    return r;
}

static int run(const struct dt_perf_op *op, const struct dt_perf_args *a)
{
    struct dt_perf_table t = { .file = stdout, .op = op, .args = a, .ranks = dt_size() };
    struct dt_perf_rank *ranks = calloc((size_t)t.ranks, sizeof *ranks);
    struct dt_perf_buffers b = { 0 };
    dt_result_t r = DT_ERR_NOMEM;

    if (ranks && dt_perf_buffers_make(&b, a))
        r = gather_ranks(ranks);
    if (r == DT_OK && dt_rank() == 0)
        dt_perf_table_begin(&t, ranks);
    if (r == DT_OK)
        r = measure_all(&t, &b);
    if (r == DT_OK && dt_rank() == 0)
        dt_perf_table_end(&t);
    if (r != DT_OK)
        fail(r == DT_ERR_NOMEM ? "out of memory; a smaller -e needs less" : dt_last_error());
    dt_perf_buffers_free(&b);
    free(ranks);
    return r == DT_OK && t.wrong == 0 ? EXIT_SUCCESS : EXIT_WRONG;
}

int main(int argc, char **argv)
{
    struct dt_perf_args a;
    const struct dt_perf_op *op;
    char text[160];
    const char *wrong = dt_perf_args_parse(&a, argc, argv, text);
    int status;

    if (!wrong && a.help)
        return dt_perf_args_help(), EXIT_SUCCESS;
    if (!wrong && a.version)
        return printf("dtrun-perf %s\n", PACKAGE_VERSION), EXIT_SUCCESS;
    op = wrong ? NULL : dt_perf_op_find(a.collective);
    if (!wrong && !op)
        snprintf(text, sizeof text, "there is no collective %.40s", a.collective);
    if (!op) {
        fprintf(stderr, "dtrun-perf: %s; --help lists everything\n", text);
        return EXIT_USAGE;
    }
    if (dt_init() != DT_OK)
        return fail(dt_last_error());
    if (a.root >= dt_size()) {
        if (dt_rank() == 0)
            fprintf(stderr, "dtrun-perf: --root: there are ranks 0 to %d\n", dt_size() - 1);
        dt_finalize();
        return EXIT_USAGE;
    }
    status = run(op, &a);
    if (dt_finalize() != DT_OK && status == EXIT_SUCCESS)
        return fail(dt_last_error());
    return status;
}
