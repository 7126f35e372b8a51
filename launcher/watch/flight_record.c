#include "launcher/watch/flight_record.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/log.h"
#include "launcher/base/mem.h"
#include "launcher/watch/words.h"
#include "runtime/wire/hostshm.h"

enum {
    CALLERS = 256, /* number of different entries that are kept */
    HOSTS = 16,    /* number of hosts that are kept */
    LINES = 8,     /* number of lines that are printed */
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
static struct dt_callers *callers_of(struct dt_flight_record *l, uint64_t comm,
                                     const struct dt_msg_last_call *call)
{
    struct dt_callers *c = l->callers;

    for (size_t i = 0; i < l->ncallers; i++) {
        if (is_same(&c[i], comm, call))
            return &c[i];
    }
    if (l->ncallers == CALLERS)
        return NULL;
    l->callers = c = dt_xrealloc(c, l->ncallers + 1, sizeof *c);
    c += l->ncallers++;
    *c = (struct dt_callers){ .comm = comm, .call = *call };
    c->call.what = copy_line(call->what);
    c->call.result = copy_line(call->result);
    c->call.algorithm = copy_line(call->algorithm);
    return c;
}

static void add_call(struct dt_flight_record *l, uint64_t comm, uint32_t rank,
                     const struct dt_msg_last_call *call)
{
    struct dt_callers *c = callers_of(l, comm, call);

    if (!c) {
        l->omitted++;
        return;
    }
    if (call->ns > c->call.ns)
        c->call.ns = call->ns;
    if (strcmp(c->call.algorithm, call->algorithm) != 0)
        strcpy(c->call.algorithm, "");
    add_rank(&c->ranks, rank);
}

static void add_dump(struct dt_flight_record *l, const char *host,
                     const struct dt_msg_last_calls *m)
{
    for (size_t i = 0; i < l->ndumps; i++) {
        if (strcmp(l->dumps[i].host, host) == 0 && !*l->dumps[i].error == !*m->dump_error)
            return;
    }
    if (!*m->dump && !*m->dump_error)
        return;
    if (l->ndumps == HOSTS) {
        l->more_hosts = true;
        return;
    }
    l->dumps = dt_xrealloc(l->dumps, l->ndumps + 1, sizeof *l->dumps);
    l->dumps[l->ndumps++] =
        (struct dt_dumphost){ dt_xstrdup(host), copy_line(m->dump), copy_line(m->dump_error) };
}

void dt_flight_record_add(struct dt_flight_record *l, const char *host,
                          const struct dt_msg_last_calls *m)
{
    const struct dt_msg_last_call *calls = m->calls.v;

    add_rank(&l->reported, m->rank);
    for (uint32_t i = 0; i < m->calls.n; i++)
        add_call(l, m->comm, m->rank, &calls[i]);
    add_dump(l, host, m);
    l->own |= m->code != DT_HOSTSHM_PEER_DIED;
}

void dt_flight_record_ended(struct dt_flight_record *l, uint32_t rank)
{
    if (dt_u32s_find(&l->reported, rank) < 0)
        add_rank(&l->silent, rank);
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

static void say_calls(const struct dt_flight_record *l, struct dt_strbuf *out)
{
    const struct dt_callers **sorted = dt_xcalloc(l->ncallers, sizeof *sorted);
    size_t first = l->ncallers > LINES ? l->ncallers - LINES : 0;

    for (size_t i = 0; i < l->ncallers; i++)
        sorted[i] = &l->callers[i];
    qsort(sorted, l->ncallers, sizeof *sorted, by_call);
    for (size_t i = first; i < l->ncallers; i++) {
        if (i == first || sorted[i]->comm != sorted[i - 1]->comm)
            say_comm(sorted[i]->comm, out);
        say_callers(sorted[i], out);
    }
    if (first + l->omitted)
        dt_strbuf_printf(out, "| and %zu more\n", first + l->omitted);
    free(sorted);
}

static void say_dumps(const struct dt_flight_record *l, struct dt_strbuf *out)
{
    bool begun = false;

    for (size_t i = 0; i < l->ndumps; i++) {
        if (*l->dumps[i].error)
            continue;
        dt_strbuf_printf(out, "%s%s:%s", begun ? ", " : "all recorded calls are in ",
                         l->dumps[i].host, l->dumps[i].dir);
        begun = true;
    }
    if (begun)
        dt_strbuf_puts(out, "\n");
    for (size_t i = 0; i < l->ndumps; i++) {
        if (*l->dumps[i].error)
            dt_strbuf_printf(out,
                             "%s: %s; the recorded calls were not written: name another directory "
                             "with DTRUN_RECORDER\n",
                             l->dumps[i].host, l->dumps[i].error);
    }
    if (l->more_hosts)
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

void dt_flight_record_words(const struct dt_flight_record *l, struct dt_strbuf *out)
{
    if (l->ncallers)
        say_calls(l, out);
    if (l->ncallers && l->silent.n)
        say_silent(&l->silent, out);
    say_dumps(l, out);
}

void dt_flight_record_forget_printed(struct dt_flight_record *l)
{
    struct dt_u32s reported = l->reported;

    for (size_t i = 0; i < l->ncallers; i++) {
        free(l->callers[i].call.what);
        free(l->callers[i].call.result);
        free(l->callers[i].call.algorithm);
        free(l->callers[i].ranks.v);
    }
    for (size_t i = 0; i < l->ndumps; i++) {
        free(l->dumps[i].host);
        free(l->dumps[i].dir);
        free(l->dumps[i].error);
    }
    free(l->callers);
    free(l->silent.v);
    free(l->dumps);
    *l = (struct dt_flight_record){ .reported = reported };
}

void dt_flight_record_free(struct dt_flight_record *l)
{
    dt_flight_record_forget_printed(l);
    free(l->reported.v);
    l->reported = (struct dt_u32s){ 0 };
}
