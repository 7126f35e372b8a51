#include "launcher/check/remarks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "launcher/base/strbuf.h"
#include "launcher/watch/words.h"

enum { CLOCK_LIMIT_S = 1 };

static void add_remark(struct dt_remarks *r, size_t host, enum dt_check_column column,
                       struct dt_strbuf *text)
{
    r->v = dt_xrealloc(r->v, r->n + 1, sizeof *r->v);
    r->v[r->n++] = (struct dt_remark){ host, column, dt_strbuf_take(text) };
}

/* ---- figures: NAN if unknown ---- */

static double cores(const struct dt_check_host *h)
{
    return h->has_facts ? dt_check_cores(h) : NAN;
}

static double memory(const struct dt_check_host *h)
{
    return h->has_facts ? dt_check_host_memory(h) : NAN;
}

static double load_share(const struct dt_check_host *h)
{
    return h->has_facts ? h->facts.load / dt_check_cores(h) : NAN;
}

static double gpus(const struct dt_check_host *h)
{
    return h->has_facts ? h->facts.gpu_models.n : NAN;
}

static double disk(const struct dt_check_host *h)
{
    return h->has_facts ? (double)h->facts.disk_free : NAN;
}

static double rtt(const struct dt_check_host *h)
{
    return h->next ? h->rtt_us / 1000.0 : NAN;
}

static double bandwidth(const struct dt_check_host *h)
{
    return h->next ? h->bandwidth : NAN;
}

static void say_number(struct dt_strbuf *out, double value)
{
    dt_strbuf_printf(out, "%.10g", value);
}

static void say_percent(struct dt_strbuf *out, double value)
{
    dt_strbuf_printf(out, "%.0f %%", value);
}

static void say_ms(struct dt_strbuf *out, double value)
{
    dt_strbuf_printf(out, "%.2f ms", value);
}

enum about { ITSELF, COUNT, PATH };

static const struct figure {
    enum dt_check_column column;
    double (*of)(const struct dt_check_host *h);
    bool more_is_worse;
    double factor; /* a figure worse than factor * median + slack gets a remark */
    double slack;
    const char *before; /* text around the figure */
    void (*say)(struct dt_strbuf *out, double value);
    const char *after;
    /* COUNT: after is a singular noun; PATH: the next host's name follows */
    enum about about;
} figures[] = {
    { DT_CHECK_CORES, cores, false, 1, 0, "", say_number, " core", COUNT },
    { DT_CHECK_MEMORY, memory, false, 0.9, 0, "", dt_words_bytes, " of memory", ITSELF },
    { DT_CHECK_LOAD, load_share, true, 1, 25, "a load of ", say_percent, " of its cores", ITSELF },
    { DT_CHECK_GPUS, gpus, false, 1, 0, "", say_number, " GPU", COUNT },
    { DT_CHECK_DISK, disk, false, 0.5, 0, "", dt_words_bytes, " free for checkpoints", ITSELF },
    { DT_CHECK_RTT, rtt, true, 2, 0.2, "", say_ms, " there and back to ", PATH },
    { DT_CHECK_BANDWIDTH, bandwidth, false, 0.7, 0, "", dt_words_bits, " to ", PATH },
};

static int compare_values(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* If two are in the middle, the better one is the median. */
static double median(const struct figure *f, const struct dt_check_host *hosts, size_t n)
{
    double *v = dt_xcalloc(n, sizeof *v), found;
    size_t known = 0;

    for (size_t i = 0; i < n; i++) {
        v[known] = f->of(&hosts[i]);
        known += !isnan(v[known]);
    }
    qsort(v, known, sizeof *v, compare_values);
    found = known == 0 ? NAN : v[f->more_is_worse ? (known - 1) / 2 : known / 2];
    free(v);
    return found;
}

static void say_figure(struct dt_strbuf *b, const struct figure *f, const struct dt_check_host *h,
                       double value, double usual)
{
    dt_strbuf_puts(b, f->before);
    f->say(b, value);
    dt_strbuf_puts(b, f->after);
    if (f->about == COUNT && value != 1)
        dt_strbuf_puts(b, "s");
    if (f->about == PATH)
        dt_strbuf_puts(b, h->next);
    dt_strbuf_puts(b, " (usual: ");
    f->say(b, usual);
    dt_strbuf_puts(b, ")");
}

static void compare_figures(struct dt_remarks *r, const struct figure *f,
                            const struct dt_check_host *hosts, size_t n)
{
    double usual = median(f, hosts, n);
    double limit = f->factor * usual + f->slack;

    for (size_t i = 0; i < n; i++) {
        double value = f->of(&hosts[i]);
        struct dt_strbuf b = { 0 };

        if (!(f->more_is_worse ? value > limit : value < limit)) /* both are false for NAN */
            continue;
        say_figure(&b, f, &hosts[i], value, usual);
        add_remark(r, i, f->column, &b);
    }
}

/* ---- names ---- */

static char *driver(const struct dt_check_host *h)
{
    return dt_xstrdup(h->facts.gpu_driver);
}

static char *kernel(const struct dt_check_host *h)
{
    return dt_xstrdup(h->facts.kernel);
}

static char *machine(const struct dt_check_host *h)
{
    return dt_xstrdup(h->facts.machine);
}

static char *links(const struct dt_check_host *h)
{
    return dt_xstrdup(h->facts.gpu_links);
}

static char *nccl(const struct dt_check_host *h)
{
    return dt_xstrdup(h->facts.nccl);
}

static const struct name {
    enum dt_check_column column;
    char *(*of)(const struct dt_check_host *h); /* returns "" if the host is not to be compared */
    const char *what;
} names[] = {
    { DT_CHECK_GPUS, dt_check_gpu_models, "GPU" }, { DT_CHECK_DRIVER, driver, "driver" },
    { DT_CHECK_LINKS, links, "GPU links" },        { DT_CHECK_NCCL, nccl, "NCCL" },
    { DT_CHECK_COLUMNS, kernel, "kernel" },        { DT_CHECK_COLUMNS, machine, "machine type" },
};

/* Returns its index in v, or n if all are empty. */
static size_t most_frequent(char *const *v, size_t n)
{
    size_t best = n, most = 0;

    for (size_t i = 0; i < n; i++) {
        size_t count = 0;

        for (size_t k = 0; k < n && *v[i]; k++)
            count += strcmp(v[i], v[k]) == 0;
        if (count > most) {
            most = count;
            best = i;
        }
    }
    return best;
}

static void compare_names(struct dt_remarks *r, const struct name *name,
                          const struct dt_check_host *hosts, size_t n)
{
    char **v = dt_xcalloc(n, sizeof *v);
    size_t usual;

    for (size_t i = 0; i < n; i++)
        v[i] = hosts[i].has_facts ? name->of(&hosts[i]) : dt_xstrdup("");
    usual = most_frequent(v, n);
    for (size_t i = 0; i < n; i++) {
        struct dt_strbuf b = { 0 };

        if (*v[i] == '\0' || strcmp(v[i], v[usual]) == 0)
            continue;
        dt_strbuf_printf(&b, "%s %s (usual: %s)", name->what, v[i], v[usual]);
        add_remark(r, i, name->column, &b);
    }
    for (size_t i = 0; i < n; i++)
        free(v[i]);
    free(v);
}

/* ---- what needs no comparison ---- */

static void judge_clock(struct dt_remarks *r, const struct dt_check_host *h, size_t host)
{
    double offset = (double)h->clock.offset_ns / 1e9;
    double size = offset < 0 ? -offset : offset;
    struct dt_strbuf b = { 0 };

    if (size - (double)h->clock.error_ns / 1e9 <= CLOCK_LIMIT_S)
        return;
    dt_strbuf_puts(&b, "its clock is ");
    dt_words_duration(&b, size);
    dt_strbuf_printf(&b, " %s this machine's", offset > 0 ? "ahead of" : "behind");
    add_remark(r, host, DT_CHECK_CLOCK, &b);
}

static void judge_disk(struct dt_remarks *r, const struct dt_check_host *h, size_t host)
{
    struct dt_strbuf b = { 0 };

    if (h->facts.disk_error == 0 || (h->problem && strstr(h->problem, h->facts.disk_dir)))
        return; /* there is no error, or the host's problem says it already */
    dt_strbuf_printf(&b, "checkpoints cannot be written: %s: %s", h->facts.disk_dir,
                     strerror(h->facts.disk_error));
    add_remark(r, host, DT_CHECK_DISK, &b);
}

static void judge_gpus(struct dt_remarks *r, const struct dt_check_host *h, size_t host)
{
    for (uint32_t i = 0; i < h->facts.gpu_ecc.n; i++) {
        const char *count = h->facts.gpu_ecc.v[i];
        struct dt_strbuf b = { 0 };

        if (strspn(count, "0") == strlen(count))
            continue;
        dt_strbuf_printf(&b, "GPU %u has %s uncorrected memory error%s", i, count,
                         strcmp(count, "1") == 0 ? "" : "s");
        add_remark(r, host, DT_CHECK_ERRORS, &b);
    }
    for (uint32_t i = 0; i < h->facts.gpu_xids.n; i++) {
        struct dt_strbuf b = { 0 };

        dt_strbuf_printf(&b, "the kernel's log has %s", h->facts.gpu_xids.v[i]);
        add_remark(r, host, DT_CHECK_ERRORS, &b);
    }
    if (h->facts.gpu_silent) {
        struct dt_strbuf b = { 0 };

        dt_strbuf_puts(&b, "nvidia-smi does not answer");
        add_remark(r, host, DT_CHECK_GPUS, &b);
    }
}

void dt_remarks_make(struct dt_remarks *remarks, const struct dt_check_host *hosts, size_t n)
{
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        compare_figures(remarks, &figures[i], hosts, n);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        compare_names(remarks, &names[i], hosts, n);
    for (size_t h = 0; h < n; h++) {
        if (hosts[h].has_facts) {
            judge_clock(remarks, &hosts[h], h);
            judge_disk(remarks, &hosts[h], h);
            judge_gpus(remarks, &hosts[h], h);
        }
    }
}

void dt_remarks_free(struct dt_remarks *remarks)
{
    for (size_t i = 0; i < remarks->n; i++)
        free(remarks->v[i].text);
    free(remarks->v);
    *remarks = (struct dt_remarks){ 0 };
}
