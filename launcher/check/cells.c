#include "launcher/check/cells.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "launcher/check/table.h"
#include "launcher/watch/words.h"

static void host(struct dt_strbuf *out, const struct dt_check_host *h)
{
    dt_strbuf_puts(out, h->name);
}

/* A problem begins with the phase that failed, as in "authenticate as anna: none of ...". */
static void ssh(struct dt_strbuf *out, const struct dt_check_host *h)
{
    if (h->greeted && strcmp(h->carrier, "local") == 0)
        dt_strbuf_puts(out, "local");
    else if (h->greeted)
        dt_strbuf_printf(out, "%s %.2f s", h->carrier, h->connect_seconds);
    else
        dt_strbuf_printf(out, "failed: %.*s (%s)", (int)strcspn(h->problem, ":"), h->problem,
                         h->carrier);
}

static void agent(struct dt_strbuf *out, const struct dt_check_host *h)
{
    dt_strbuf_printf(out, "%s%s", h->agent_version, h->agent_sent ? " sent" : "");
}

static void cores(struct dt_strbuf *out, const struct dt_check_host *h)
{
    dt_strbuf_printf(out, "%.10g", dt_check_cores(h));
    if (dt_check_cores(h) < h->facts.cpus)
        dt_strbuf_printf(out, " of %" PRIu32, h->facts.cpus);
}

static void physical(struct dt_strbuf *out, const struct dt_check_host *h)
{
    if (h->facts.physical_cores)
        dt_strbuf_printf(out, "%" PRIu32, h->facts.physical_cores);
}

static void memory(struct dt_strbuf *out, const struct dt_check_host *h)
{
    dt_words_bytes(out, dt_check_host_memory(h));
}

static void load(struct dt_strbuf *out, const struct dt_check_host *h)
{
    dt_strbuf_printf(out, "%.1f", h->facts.load / 100.0);
}

static void gpus(struct dt_strbuf *out, const struct dt_check_host *h)
{
    char *models = dt_check_gpu_models(h);

    if (h->facts.gpu_models.n)
        dt_strbuf_printf(out, "%" PRIu32 " x %s", h->facts.gpu_models.n, models);
    free(models);
}

static void driver(struct dt_strbuf *out, const struct dt_check_host *h)
{
    dt_strbuf_puts(out, h->facts.gpu_driver);
}

static void clock_offset(struct dt_strbuf *out, const struct dt_check_host *h)
{
    double ms = (double)h->clock.offset_ns / 1e6;
    double error = (double)h->clock.error_ns / 1e6;

    if (ms > -1000 && ms < 1000)
        dt_strbuf_printf(out, "%+.1f +-%.1f ms", ms > -0.05 && ms < 0.05 ? 0 : ms,
                         error < 0.1 ? 0.1 : error);
    else
        dt_strbuf_printf(out, "%+.1f s", ms / 1000);
}

static void disk(struct dt_strbuf *out, const struct dt_check_host *h)
{
    dt_words_bytes(out, (double)h->facts.disk_free);
}

static void rtt(struct dt_strbuf *out, const struct dt_check_host *h)
{
    if (h->next)
        dt_strbuf_printf(out, "%.2f ms", h->rtt_us / 1000.0);
}

static void bandwidth(struct dt_strbuf *out, const struct dt_check_host *h)
{
    if (h->next)
        dt_words_bits(out, h->bandwidth);
}

static void links(struct dt_strbuf *out, const struct dt_check_host *h)
{
    dt_strbuf_puts(out, h->facts.gpu_links);
}

static void nccl(struct dt_strbuf *out, const struct dt_check_host *h)
{
    dt_strbuf_puts(out, h->facts.nccl);
}

static void errors(struct dt_strbuf *out, const struct dt_check_host *h)
{
    uint64_t ecc;

    if (dt_check_gpu_ecc(h, &ecc))
        dt_strbuf_printf(out, "%" PRIu64 " ECC, %" PRIu32 " Xid", ecc, h->facts.gpu_xids.n);
    else if (h->facts.gpu_models.n)
        dt_strbuf_printf(out, "%" PRIu32 " Xid", h->facts.gpu_xids.n);
}

static const struct column {
    struct dt_table_column look;
    enum { ALWAYS, GREETED, FACTS } known;
    void (*say)(struct dt_strbuf *out,
                const struct dt_check_host *h); /* writes nothing if the value is unknown */
} columns[DT_CHECK_COLUMNS] = {
    [DT_CHECK_HOST] = { { "host", false }, ALWAYS, host },
    [DT_CHECK_SSH] = { { "ssh", false }, ALWAYS, ssh },
    [DT_CHECK_AGENT] = { { "agent", false }, GREETED, agent },
    [DT_CHECK_CORES] = { { "cores", true }, FACTS, cores },
    [DT_CHECK_PHYSICAL] = { { "physical", true }, FACTS, physical },
    [DT_CHECK_MEMORY] = { { "memory", true }, FACTS, memory },
    [DT_CHECK_LOAD] = { { "load", true }, FACTS, load },
    [DT_CHECK_GPUS] = { { "GPUs", false }, FACTS, gpus },
    [DT_CHECK_DRIVER] = { { "driver", false }, FACTS, driver },
    [DT_CHECK_CLOCK] = { { "clock", true }, FACTS, clock_offset },
    [DT_CHECK_DISK] = { { "disk", true }, FACTS, disk },
    [DT_CHECK_RTT] = { { "to next: rtt", true }, FACTS, rtt },
    [DT_CHECK_BANDWIDTH] = { { "bandwidth", true }, FACTS, bandwidth },
    [DT_CHECK_LINKS] = { { "GPU links", false }, FACTS, links },
    [DT_CHECK_NCCL] = { { "NCCL", false }, FACTS, nccl },
    [DT_CHECK_ERRORS] = { { "GPU errors", false }, FACTS, errors },
};

static char *make_cell(const struct column *c, const struct dt_check_host *h)
{
    struct dt_strbuf b = { 0 };

    if (c->known == ALWAYS || (c->known == GREETED && h->greeted) || h->has_facts)
        c->say(&b, h);
    dt_strbuf_puts(&b, b.len ? "" : "-");
    return dt_strbuf_take(&b);
}

/* Returns how many of the columns to show: those of GPUs only if a host has some. */
static size_t count_columns(const struct dt_check_host *hosts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (hosts[i].has_facts && hosts[i].facts.gpu_models.n)
            return DT_CHECK_COLUMNS;
    return DT_CHECK_LINKS;
}

/* Returns which cells have a remark. */
static bool *find_marks(const struct dt_check_host *hosts, size_t n, const struct dt_remarks *r)
{
    bool *marks = dt_xcalloc(n * DT_CHECK_COLUMNS, sizeof *marks);

    for (size_t i = 0; i < n; i++)
        marks[i * DT_CHECK_COLUMNS + DT_CHECK_HOST] = hosts[i].problem != NULL;
    for (size_t i = 0; i < r->n; i++)
        if (r->v[i].column < DT_CHECK_COLUMNS)
            marks[r->v[i].host * DT_CHECK_COLUMNS + r->v[i].column] = true;
    return marks;
}

static void append(char **cell, const char *suffix)
{
    char *more = dt_xasprintf("%s%s", *cell, suffix);

    free(*cell);
    *cell = more;
}

/* If one cell of a column is marked, the others leave room for a mark, so that figures stay
 * aligned. */
static void mark_column(const struct dt_table *table, char **cells, const bool *marks,
                        size_t column)
{
    bool any = false;

    for (size_t i = 0; i < table->nrows; i++)
        any |= marks[i * DT_CHECK_COLUMNS + column];
    for (size_t i = 0; any && i < table->nrows; i++)
        append(&cells[i * table->ncolumns + column],
               marks[i * DT_CHECK_COLUMNS + column] ? " !" : "  ");
}

void dt_check_print(struct dt_strbuf *out, const struct dt_check_host *hosts, size_t n,
                    const struct dt_remarks *remarks, size_t width)
{
    size_t shown = count_columns(hosts, n);
    char **cells = dt_xcalloc(n * shown, sizeof *cells);
    bool *marks = find_marks(hosts, n, remarks);
    struct dt_table_column looks[DT_CHECK_COLUMNS];
    struct dt_table table = { looks, shown, cells, n };

    for (size_t c = 0; c < shown; c++) {
        looks[c] = columns[c].look;
        for (size_t i = 0; i < n; i++)
            cells[i * shown + c] = make_cell(&columns[c], &hosts[i]);
        mark_column(&table, cells, marks, c);
    }
    dt_table_print(out, &table, width);
    for (size_t i = 0; i < n * shown; i++)
        free(cells[i]);
    free(cells);
    free(marks);
}
