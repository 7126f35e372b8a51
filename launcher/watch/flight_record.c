#include "launcher/watch/flight_record.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/log.h"
#include "launcher/base/mem.h"
#include "launcher/watch/words.h"
#include "runtime/wire/hostshm.h"

enum {
    CALLERS = 256, /* most different calls that are kept */
    HOSTS = 16,    /* most hosts whose dumps are kept */
    LINES = 8,     /* most calls that are printed */
    WORTH_TELLING_NS = 1000 * 1000,
};

/* ---- collecting ---- */

/* Makes one line of a rank's text. */
static char *copy_line(const char *line)
{
    char *text = dt_xstrdup(line);

    dt_log_tame(text);
    return text;
}

/* A rank may have made several calls that look alike: some waits have no number of their own. */
static void add_rank(struct dt_u32s *ranks, uint32_t rank)
{
    uint32_t i = ranks->n;

    while (i > 0 && ranks->v[i - 1] > rank)
        i--;
    if (i > 0 && ranks->v[i - 1] == rank)
        return;
    ranks->v = dt_xrealloc(ranks->v, ranks->n + 1, sizeof *ranks->v);
    memmove(&ranks->v[i + 1], &ranks->v[i], (ranks->n - i) * sizeof *ranks->v);
    ranks->v[i] = rank;
    ranks->n++;
}

static bool is_same(const struct dt_callers *c, uint64_t comm, const struct dt_msg_last_call *call)
{
    return c->comm == comm && c->call.call == call->call && strcmp(c->call.what, call->what) == 0 &&
           strcmp(c->call.result, call->result) == 0;
}

/* Returns NULL if there is no room for another entry. */
static struct dt_callers *callers_of(struct dt_flight_record *r, uint64_t comm,
                                     const struct dt_msg_last_call *call)
{
    struct dt_callers *c = r->callers;

    for (size_t i = 0; i < r->ncallers; i++) {
        if (is_same(&c[i], comm, call))
            return &c[i];
    }
    if (r->ncallers == CALLERS)
        return NULL;
    r->callers = c = dt_xrealloc(c, r->ncallers + 1, sizeof *c);
    c += r->ncallers++;
    *c = (struct dt_callers){ .comm = comm, .call = *call };
    c->call.what = copy_line(call->what);
    c->call.result = copy_line(call->result);
    c->call.algorithm = copy_line(call->algorithm);
    return c;
}

static void add_call(struct dt_flight_record *r, uint64_t comm, uint32_t rank,
                     const struct dt_msg_last_call *call)
{
    struct dt_callers *c = callers_of(r, comm, call);

    if (!c) {
        r->omitted++;
        return;
    }
    if (call->ns > c->call.ns)
        c->call.ns = call->ns;
    if (strcmp(c->call.algorithm, call->algorithm) != 0)
        strcpy(c->call.algorithm, "");
    add_rank(&c->ranks, rank);
}

/* Keeps one directory and one error for each host. */
static void add_dump(struct dt_flight_record *r, const char *host,
                     const struct dt_msg_last_calls *m)
{
    for (size_t i = 0; i < r->ndumps; i++) {
        if (strcmp(r->dumps[i].host, host) == 0 && !*r->dumps[i].error == !*m->dump_error)
            return;
    }
    if (!*m->dump && !*m->dump_error)
        return;
    if (r->ndumps == HOSTS) {
        r->more_hosts = true;
        return;
    }
    r->dumps = dt_xrealloc(r->dumps, r->ndumps + 1, sizeof *r->dumps);
    r->dumps[r->ndumps++] =
        (struct dt_dumphost){ dt_xstrdup(host), copy_line(m->dump), copy_line(m->dump_error) };
}

void dt_flight_record_add(struct dt_flight_record *r, const char *host,
                          const struct dt_msg_last_calls *m)
{
    const struct dt_msg_last_call *calls = m->calls.v;

    add_rank(&r->reported, m->rank);
    for (uint32_t i = 0; i < m->calls.n; i++)
        add_call(r, m->comm, m->rank, &calls[i]);
    add_dump(r, host, m);
    r->own |= m->code != DT_HOSTSHM_PEER_DIED;
}

void dt_flight_record_ended(struct dt_flight_record *r, uint32_t rank)
{
    if (dt_u32s_find(&r->reported, rank) < 0)
        add_rank(&r->silent, rank);
}

/* ---- printing ---- */

static int by_call(const void *a, const void *b)
{
    const struct dt_callers *x = *(const struct dt_callers *const *)a;
    const struct dt_callers *y = *(const struct dt_callers *const *)b;

    if (x->comm != y->comm)
        return x->comm < y->comm ? -1 : 1;
    if (x->call.call != y->call.call)
        return x->call.call < y->call.call ? -1 : 1;
    return (x->ranks.v[0] > y->ranks.v[0]) - (x->ranks.v[0] < y->ranks.v[0]);
}

static void say_comm(uint64_t comm, struct dt_strbuf *out)
{
    dt_strbuf_puts(out, "the last calls on ");
    dt_words_comm(out, comm);
    dt_strbuf_puts(out, ":\n");
}

static void say_callers(const struct dt_callers *c, struct dt_strbuf *out)
{
    bool known = *c->call.algorithm && strcmp(c->call.algorithm, "-") != 0;

    dt_strbuf_printf(out, "| call %" PRIu64 ": %s, %s%s%s", c->call.call, c->call.what,
                     c->call.result, known ? " by " : "", known ? c->call.algorithm : "");
    if (c->call.ns >= WORTH_TELLING_NS) {
        dt_strbuf_puts(out, c->ranks.n > 1 ? ", up to " : ", ");
        dt_words_duration(out, (double)c->call.ns / 1e9);
    }
    dt_strbuf_puts(out, " (");
    dt_words_ranks(out, &c->ranks);
    dt_strbuf_puts(out, ")\n");
}

static void say_calls(const struct dt_flight_record *r, struct dt_strbuf *out)
{
    const struct dt_callers **sorted = dt_xcalloc(r->ncallers, sizeof *sorted);
    size_t first = r->ncallers > LINES ? r->ncallers - LINES : 0;

    for (size_t i = 0; i < r->ncallers; i++)
        sorted[i] = &r->callers[i];
    qsort(sorted, r->ncallers, sizeof *sorted, by_call);
    for (size_t i = first; i < r->ncallers; i++) {
        if (i == first || sorted[i]->comm != sorted[i - 1]->comm)
            say_comm(sorted[i]->comm, out);
        say_callers(sorted[i], out);
    }
    if (first + r->omitted)
        dt_strbuf_printf(out, "| and %zu more\n", first + r->omitted);
    free(sorted);
}

static void say_dumps(const struct dt_flight_record *r, struct dt_strbuf *out)
{
    bool begun = false;

    for (size_t i = 0; i < r->ndumps; i++) {
        if (*r->dumps[i].error)
            continue;
        dt_strbuf_printf(out, "%s%s:%s", begun ? ", " : "all recorded calls are in ",
                         r->dumps[i].host, r->dumps[i].dir);
        begun = true;
    }
    if (begun)
        dt_strbuf_puts(out, "\n");
    for (size_t i = 0; i < r->ndumps; i++) {
        if (*r->dumps[i].error)
            dt_strbuf_printf(out,
                             "%s: %s; the recorded calls were not written: name another directory "
                             "with DTRUN_RECORDER\n",
                             r->dumps[i].host, r->dumps[i].error);
    }
    if (r->more_hosts)
        dt_strbuf_puts(
            out, "more hosts have recorded calls, or could not write them; they are not listed\n");
}

static void say_silent(const struct dt_u32s *ranks, struct dt_strbuf *out)
{
    dt_strbuf_puts(out, "| ");
    dt_words_ranks(out, ranks);
    dt_strbuf_printf(out, ": ended before %s\n",
                     ranks->n == 1 ? "it reported its last calls"
                                   : "they reported their last calls");
}

void dt_flight_record_words(const struct dt_flight_record *r, struct dt_strbuf *out)
{
    if (r->ncallers)
        say_calls(r, out);
    if (r->ncallers && r->silent.n)
        say_silent(&r->silent, out);
    say_dumps(r, out);
}

void dt_flight_record_forget_printed(struct dt_flight_record *r)
{
    struct dt_u32s reported = r->reported;

    for (size_t i = 0; i < r->ncallers; i++) {
        free(r->callers[i].call.what);
        free(r->callers[i].call.result);
        free(r->callers[i].call.algorithm);
        free(r->callers[i].ranks.v);
    }
    for (size_t i = 0; i < r->ndumps; i++) {
        free(r->dumps[i].host);
        free(r->dumps[i].dir);
        free(r->dumps[i].error);
    }
    free(r->callers);
    free(r->silent.v);
    free(r->dumps);
    *r = (struct dt_flight_record){ .reported = reported };
}

void dt_flight_record_free(struct dt_flight_record *r)
{
    dt_flight_record_forget_printed(r);
    free(r->reported.v);
    r->reported = (struct dt_u32s){ 0 };
}
