#include "cmd/perf/table.h"

#include <inttypes.h>

#include "runtime/kernels/dtype.h"

static void head(const struct dt_perf_table *t, const struct dt_perf_rank *ranks)
{
    const struct dt_perf_args *a = t->args;

    fprintf(t->text, "# dtrun-perf %d.%d.%d\n# Collective test starting: %s_perf\n",
            DT_VERSION_MAJOR, DT_VERSION_MINOR, DT_VERSION_PATCH, t->op->name);
    fprintf(t->text, "# nThread 1 nGpus 1 minBytes %zu maxBytes %zu step: ", a->min_bytes,
            a->max_bytes);
    if (a->step)
        fprintf(t->text, "%zu(bytes)", a->step);
    else
        fprintf(t->text, "%g(factor)", a->factor);
    fprintf(t->text, " warmup iters: %d iters: ", a->warmup);
    if (a->iterations)
        fprintf(t->text, "%d", a->iterations);
    else
        fprintf(t->text, "auto");
    fprintf(t->text, " agg iters: 1 validation: %d graph: 0 unalign: %zu\n#\n# Using devices\n",
            a->check, a->offset);
    for (int i = 0; i < t->ranks; i++)
        fprintf(t->text, "#  Rank %2d Group  0 Pid %6" PRId64 " on %10s device %s\n", i,
                ranks[i].pid, ranks[i].host, ranks[i].memory);
    if (t->network > 0)
        fprintf(t->text, "#\n# network: %.4g Gbit/s each way, %s\n", t->network,
                a->link > 0 ? "as --link says" : "measured");
    fprintf(
        t->text,
        "#\n#                                                              out-of-place        "
        "               in-place                 out-of-place%s\n"
        "#       size         count      type   redop    root     time   algbw   busbw  #wrong  "
        "   time   algbw   busbw  #wrong      p50     p99  %%bound%s\n"
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)          "
        "   (us)  (GB/s)  (GB/s)             (us)    (us)     (%%)%s\n",
        a->raw ? "      NCCL itself" : "", a->raw ? "     time   ratio" : "",
        a->raw ? "     (us)        " : "");
    fflush(t->text); /* the first row may take a while */
}

static void json_head(const struct dt_perf_table *t)
{
    fprintf(t->json,
            "{\"version\": \"%d.%d.%d\", \"collective\": \"%s\", \"ranks\": %d, \"network\": ",
            DT_VERSION_MAJOR, DT_VERSION_MINOR, DT_VERSION_PATCH, t->op->name, t->ranks);
    if (t->network > 0)
        fprintf(t->json, "{\"gbits\": %.6g, \"measured\": %s}", t->network,
                t->args->link > 0 ? "false" : "true");
    else
        fprintf(t->json, "null");
    fprintf(t->json, ", \"rows\": [");
}

void dt_perf_table_begin(struct dt_perf_table *t, const struct dt_perf_rank *ranks)
{
    if (t->text)
        head(t, ranks);
    if (t->json)
        json_head(t);
}

/* ---- rows ---- */

static const char *type_of(const struct dt_perf_table *t, const struct dt_perf_row *r)
{
    return t->op->empty ? "none" : dt_perf_type_name(r->what.dtype);
}

static const char *op_of(const struct dt_perf_table *t, const struct dt_perf_row *r)
{
    return t->op->reduces ? dt_op_name(r->what.op) : "none";
}

static int root_of(const struct dt_perf_table *t, const struct dt_perf_row *r)
{
    return t->op->has_root ? r->what.root : -1;
}

static double algorithm_bandwidth(const struct dt_perf_row *r, const struct dt_perf_figures *f)
{
    return f->us > 0 ? (double)r->bytes / f->us * 1e-3 : 0;
}

static double percent_of_bound(const struct dt_perf_row *r)
{
    return r->out_of_place.us > 0 ? 100 * r->bound_us / r->out_of_place.us : 0;
}

/* Returns how many times as long this call takes as NCCL's. */
static double raw_ratio(const struct dt_perf_row *r)
{
    return r->raw.us > 0 ? r->out_of_place.us / r->raw.us : 0;
}

/* Rounds as nccl-tests does, so that long times fit into their columns. */
static int digits_of(double us)
{
    return us >= 10000 ? 0 : us >= 100 ? 1 : 2;
}

static void text_figures(const struct dt_perf_table *t, const struct dt_perf_row *r,
                         const struct dt_perf_figures *f)
{
    double bandwidth = algorithm_bandwidth(r, f);

    if (!f->measured) {
        fprintf(t->text, "  %7s  %6s  %6s  %6s", "N/A", "N/A", "N/A", "N/A");
        return;
    }
    fprintf(t->text, "  %7.*f  %6.2f  %6.2f", digits_of(f->us), f->us, bandwidth,
            bandwidth * t->op->bus_factor(t->ranks));
    if (f->checked)
        fprintf(t->text, "  %6zu", f->wrong);
    else
        fprintf(t->text, "  %6s", "N/A");
}

static void text_row(const struct dt_perf_table *t, const struct dt_perf_row *r)
{
    fprintf(t->text, "%12zu  %12zu  %8s  %6s  %6d", r->bytes, r->count, type_of(t, r), op_of(t, r),
            root_of(t, r));
    text_figures(t, r, &r->out_of_place);
    text_figures(t, r, &r->in_place);
    fprintf(t->text, "  %7.*f %7.*f", digits_of(r->out_of_place.p50), r->out_of_place.p50,
            digits_of(r->out_of_place.p99), r->out_of_place.p99);
    if (r->bound_us > 0)
        fprintf(t->text, "  %6.1f", percent_of_bound(r));
    else
        fprintf(t->text, "  %6s", "N/A");
    if (t->args->raw && r->raw.measured)
        fprintf(t->text, "  %7.*f  %6.3f", digits_of(r->raw.us), r->raw.us, raw_ratio(r));
    else if (t->args->raw)
        fprintf(t->text, "  %7s  %6s", "N/A", "N/A");
    fprintf(t->text, "\n");
    fflush(t->text);
}

static void json_figures(const struct dt_perf_table *t, const char *name,
                         const struct dt_perf_row *r, const struct dt_perf_figures *f)
{
    double bandwidth = algorithm_bandwidth(r, f);

    fprintf(t->json, ", \"%s\": ", name);
    if (!f->measured) {
        fprintf(t->json, "null");
        return;
    }
    fprintf(t->json,
            "{\"time_us\": %.6g, \"p50_us\": %.6g, \"p99_us\": %.6g, \"algbw\": %.6g, "
            "\"busbw\": %.6g, \"wrong\": ",
            f->us, f->p50, f->p99, bandwidth, bandwidth * t->op->bus_factor(t->ranks));
    if (f->checked)
        fprintf(t->json, "%zu}", f->wrong);
    else
        fprintf(t->json, "null}");
}

static void json_row(const struct dt_perf_table *t, const struct dt_perf_row *r)
{
    fprintf(t->json,
            "%s\n  {\"bytes\": %zu, \"count\": %zu, \"type\": \"%s\", \"op\": \"%s\", "
            "\"root\": %d",
            t->rows ? "," : "", r->bytes, r->count, type_of(t, r), op_of(t, r), root_of(t, r));
    json_figures(t, "out_of_place", r, &r->out_of_place);
    json_figures(t, "in_place", r, &r->in_place);
    if (t->args->raw) {
        json_figures(t, "raw", r, &r->raw);
        if (r->raw.measured)
            fprintf(t->json, ", \"ratio\": %.4g", raw_ratio(r));
        else
            fprintf(t->json, ", \"ratio\": null");
    }
    if (r->bound_us > 0)
        fprintf(t->json, ", \"percent_of_bound\": %.4g}", percent_of_bound(r));
    else
        fprintf(t->json, ", \"percent_of_bound\": null}");
}

static void count(struct dt_perf_table *t, const struct dt_perf_row *r,
                  const struct dt_perf_figures *f)
{
    t->bus_sum += t->op->bus_factor(t->ranks) * algorithm_bandwidth(r, f);
    t->bus_n += f->measured;
    t->wrong += f->wrong;
}

void dt_perf_table_row(struct dt_perf_table *t, const struct dt_perf_row *r)
{
    if (t->text)
        text_row(t, r);
    if (t->json)
        json_row(t, r);
    t->rows++;
    count(t, r, &r->out_of_place);
    count(t, r, &r->in_place);
    t->wrong += r->raw.wrong;
}

void dt_perf_table_end(struct dt_perf_table *t)
{
    double average = t->bus_n ? t->bus_sum / (double)t->bus_n : 0;

    if (t->text)
        fprintf(t->text,
                "# Out of bounds values : %zu %s\n# Avg bus bandwidth    : %g\n#\n"
                "# Collective test concluded: %s_perf\n",
                t->wrong, t->wrong ? "FAILED" : "OK", average, t->op->name);
    if (t->json)
        fprintf(t->json, "\n], \"avg_busbw\": %.6g, \"wrong\": %zu}\n", average, t->wrong);
}
