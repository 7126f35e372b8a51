#include "launcher/check/remarks.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "launcher/base/strbuf.h"
#include "launcher/job/words.h"

enum { CLOCK_LIMIT_S = 1 };

static void add(struct dt_remarks *r, size_t host, enum dt_check_column column,
                struct dt_strbuf *text)
{
    r->v = dt_xrealloc(r->v, r->n + 1, sizeof *r->v);
    r->v[r->n++] = (struct dt_remark){ host, column, dt_xstrdup(dt_strbuf_text(text)) };
    dt_strbuf_free(text);
}

/* --- figures --- */

static double gpus(const struct dt_check_host *h)
{
    return h->facts.gpu_models.n;
}

static double load_share(const struct dt_check_host *h)
{
    return h->facts.load / dt_check_cores(h);
}

static double disk(const struct dt_check_host *h)
{
    return (double)h->facts.disk_free;
}

static void say_number(struct dt_strbuf *out, double value)
{
    dt_strbuf_printf(out, "%.10g", value);
}

static void say_percent(struct dt_strbuf *out, double value)
{
    dt_strbuf_printf(out, "%.0f %%", value);
}

static const struct figure {
    enum dt_check_column column;
    double (*of)(const struct dt_check_host *h);
    bool more_is_worse;
    double factor; /* worse than factor * median + slack is remarked on */
    double slack;
    const char *before; /* around the figure */
    void (*say)(struct dt_strbuf *out, double value);
    const char *after;
    bool counts; /* after is a noun, in the singular */
} figures[] = {
    { DT_CHECK_CORES, dt_check_cores, false, 1, 0, "", say_number, " core", true },
    { DT_CHECK_MEMORY, dt_check_memory, false, 0.9, 0, "", dt_words_bytes, " of memory", false },
    { DT_CHECK_LOAD, load_share, true, 1, 25, "a load of ", say_percent, " of its cores", false },
    { DT_CHECK_GPUS, gpus, false, 1, 0, "", say_number, " GPU", true },
    { DT_CHECK_DISK, disk, false, 0.5, 0, "", dt_words_bytes, " free for checkpoints", false },
};

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Of two in the middle, the better one. */
static double median(const struct figure *f, const struct dt_check_host *hosts, size_t n)
{
    double *v = dt_xcalloc(n, sizeof *v), found;
    size_t known = 0;

    for (size_t i = 0; i < n; i++)
        if (hosts[i].has_facts)
            v[known++] = f->of(&hosts[i]);
    qsort(v, known, sizeof *v, compare);
    found = known == 0 ? 0 : v[f->more_is_worse ? (known - 1) / 2 : known / 2];
    free(v);
    return found;
}

static void compare_figures(struct dt_remarks *r, const struct figure *f,
                            const struct dt_check_host *hosts, size_t n)
{
    double usual = median(f, hosts, n);
    double limit = f->factor * usual + f->slack;

    for (size_t i = 0; i < n; i++) {
        double value = hosts[i].has_facts ? f->of(&hosts[i]) : usual;
        struct dt_strbuf b = { 0 };

        if (f->more_is_worse ? value <= limit : value >= limit)
            continue;
        dt_strbuf_puts(&b, f->before);
        f->say(&b, value);
        dt_strbuf_printf(&b, "%s%s (usual: ", f->after, f->counts && value != 1 ? "s" : "");
        f->say(&b, usual);
        dt_strbuf_puts(&b, ")");
        add(r, i, f->column, &b);
    }
}

/* --- names --- */

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

static const struct name {
    enum dt_check_column column;
    char *(*of)(const struct dt_check_host *h); /* "" takes no part */
    const char *what;
} names[] = {
    { DT_CHECK_GPUS, dt_check_gpu_models, "GPU" },
    { DT_CHECK_DRIVER, driver, "driver" },
    { DT_CHECK_COLUMNS, kernel, "kernel" },
    { DT_CHECK_COLUMNS, machine, "machine type" },
};

/* Its index in v; n when all are empty. */
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
        add(r, i, name->column, &b);
    }
    for (size_t i = 0; i < n; i++)
        free(v[i]);
    free(v);
}

/* --- what needs no comparison --- */

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
    add(r, host, DT_CHECK_CLOCK, &b);
}

static void judge_disk(struct dt_remarks *r, const struct dt_check_host *h, size_t host)
{
    struct dt_strbuf b = { 0 };

    if (h->facts.disk_error == 0)
        return;
    dt_strbuf_printf(&b, "checkpoints cannot be written: %s: %s", h->facts.disk_dir,
                     strerror(h->facts.disk_error));
    add(r, host, DT_CHECK_DISK, &b);
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
