#include "cmd/perf/table.h"

#include <inttypes.h>

static void head(const struct dt_perf_table *t, const struct dt_perf_rank *ranks)
{
    const struct dt_perf_args *a = t->args;

    fprintf(t->file, "# dtrun-perf %d.%d.%d\n# Collective test starting: %s_perf\n",
            DT_VERSION_MAJOR, DT_VERSION_MINOR, DT_VERSION_PATCH, t->op->name);
    fprintf(t->file, "# nThread 1 nGpus 1 minBytes %zu maxBytes %zu step: ", a->min_bytes,
            a->max_bytes);
    if (a->step)
        fprintf(t->file, "%zu(bytes)", a->step);
    else
        fprintf(t->file, "%g(factor)", a->factor);
    fprintf(t->file, " warmup iters: %d iters: ", a->warmup);
    if (a->iterations)
        fprintf(t->file, "%d", a->iterations);
    else
        fprintf(t->file, "auto");
    fprintf(t->file, " agg iters: 1 validation: %d graph: 0 unalign: %zu\n#\n# Using devices\n",
            a->check, a->offset);
    for (int i = 0; i < t->ranks; i++)
        fprintf(t->file, "#  Rank %2d Group  0 Pid %6" PRId64 " on %10s device host memory\n", i,
                ranks[i].pid, ranks[i].host);
    fprintf(
        t->file,
        "#\n#                                                              out-of-place        "
        "               in-place                 out-of-place\n"
        "#       size         count      type   redop    root     time   algbw   busbw  #wrong  "
        "   time   algbw   busbw  #wrong      p50     p99  %%bound\n"
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)          "
        "   (us)  (GB/s)  (GB/s)             (us)    (us)     (%%)\n");
}

void dt_perf_table_begin(struct dt_perf_table *t, const struct dt_perf_rank *ranks)
{
    const struct dt_perf_args *a = t->args;

    if (!a->json) {
        head(t, ranks);
        return;
    }
    fprintf(t->file,
            "{\"version\": \"%d.%d.%d\", \"collective\": \"%s\", \"type\": \"%s\", \"op\": \"%s\", "
            "\"root\": %d, \"ranks\": %d, \"rows\": [",
            DT_VERSION_MAJOR, DT_VERSION_MINOR, DT_VERSION_PATCH, t->op->name,
            dt_perf_type_name(a->dtype), t->op->reduces ? dt_op_name(a->op) : "none",
            t->op->reduces ? -1 : a->root, t->ranks);
}

static double algorithm_bandwidth(const struct dt_perf_row *r, const struct dt_perf_figures *f)
{
    return f->us > 0 ? (double)r->bytes / f->us * 1e-3 : 0;
}

static void figures(const struct dt_perf_table *t, const struct dt_perf_row *r,
                    const struct dt_perf_figures *f)
{
    double bandwidth = algorithm_bandwidth(r, f);
    int digits = f->us >= 10000 ? 0 : f->us >= 100 ? 1 : 2;

    fprintf(t->file, "  %7.*f  %6.2f  %6.2f", digits, f->us, bandwidth,
            bandwidth * t->op->bus_factor(t->ranks));
    if (t->args->check)
        fprintf(t->file, "  %6zu", f->wrong);
    else
        fprintf(t->file, "  %6s", "N/A");
}

static double percent_of_bound(const struct dt_perf_row *r)
{
    return r->out_of_place.us > 0 ? 100 * r->bound_us / r->out_of_place.us : 0;
}

static void text_row(const struct dt_perf_table *t, const struct dt_perf_row *r)
{
    fprintf(t->file, "%12zu  %12zu  %8s  %6s  %6d", r->bytes, r->count,
            dt_perf_type_name(t->args->dtype), t->op->reduces ? dt_op_name(t->args->op) : "none",
            t->op->reduces ? -1 : t->args->root);
    figures(t, r, &r->out_of_place);
    figures(t, r, &r->in_place);
    fprintf(t->file, "  %7.2f %7.2f", r->out_of_place.p50, r->out_of_place.p99);
    if (r->bound_us > 0)
        fprintf(t->file, "  %6.1f\n", percent_of_bound(r));
    else
        fprintf(t->file, "  %6s\n", "N/A");
}

static void json_figures(const struct dt_perf_table *t, const char *name,
                         const struct dt_perf_row *r, const struct dt_perf_figures *f)
{
    double bandwidth = algorithm_bandwidth(r, f);

    fprintf(t->file,
            ", \"%s\": {\"time_us\": %.4g, \"p50_us\": %.4g, \"p99_us\": %.4g, \"algbw\": %.4g, "
            "\"busbw\": %.4g, \"wrong\": ",
            name, f->us, f->p50, f->p99, bandwidth, bandwidth * t->op->bus_factor(t->ranks));
    if (t->args->check)
        fprintf(t->file, "%zu}", f->wrong);
    else
        fprintf(t->file, "null}");
}

static void json_row(const struct dt_perf_table *t, const struct dt_perf_row *r)
{
    fprintf(t->file, "%s\n  {\"bytes\": %zu, \"count\": %zu", t->rows ? "," : "", r->bytes,
            r->count);
    json_figures(t, "out_of_place", r, &r->out_of_place);
    json_figures(t, "in_place", r, &r->in_place);
    if (r->bound_us > 0)
        fprintf(t->file, ", \"percent_of_bound\": %.4g}", percent_of_bound(r));
    else
        fprintf(t->file, ", \"percent_of_bound\": null}");
}

void dt_perf_table_row(struct dt_perf_table *t, const struct dt_perf_row *r)
{
    double factor = t->op->bus_factor(t->ranks);

    (t->args->json ? json_row : text_row)(t, r);
    fflush(t->file);
    t->rows++;
    t->bus_sum +=
        factor * (algorithm_bandwidth(r, &r->out_of_place) + algorithm_bandwidth(r, &r->in_place));
    t->wrong += r->out_of_place.wrong + r->in_place.wrong;
}

void dt_perf_table_end(struct dt_perf_table *t)
{
    double average = t->rows ? t->bus_sum / (2 * (double)t->rows) : 0;

    if (t->args->json)
        fprintf(t->file, "\n], \"avg_busbw\": %.4g, \"wrong\": %zu}\n", average, t->wrong);
    else
        fprintf(t->file,
                "# Out of bounds values : %zu %s\n# Avg bus bandwidth    : %g\n#\n"
                "# Collective test concluded: %s_perf\n",
                t->wrong, t->wrong ? "FAILED" : "OK", average, t->op->name);
}
