#include "launcher/agent/mpi/pmi.h"

#include <limits.h>
#include <search.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "launcher/base/strbuf.h"

struct client { /* a rank */
    char line[DT_PMI_LINE_MAX];
    size_t have;
    bool greeted;
    bool in_barrier;
    bool in_spawn;
    bool aborted;
    uint32_t puts; /* number of puts since the last barrier */
};

struct pair {
    const char *key;
    const char *value;
    char text[]; /* of key and value */
};

struct dt_pmi {
    struct dt_pmi_ops ops;
    void *arg;
    char *name;
    char *mapping;
    uint32_t universe;
    struct client *clients; /* by local rank */
    uint32_t local_ranks;
    uint32_t waiting;      /* how many are in the barrier */
    void *space;           /* a tree of struct pair, for tsearch(3) */
    struct dt_strbuf puts; /* puts since the last barrier: "key=value\n" */
};

/* ---- the key-value space ---- */

static int compare_pairs(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;

    return strcmp(x->key, y->key);
}

static const char *find_value(const struct dt_pmi *p, const char *key)
{
    const struct pair wanted = { .key = key };
    struct pair *const *found = tfind(&wanted, &p->space, compare_pairs);

    return found ? (*found)->value : NULL;
}

static void store(struct dt_pmi *p, const char *key, size_t key_n, const char *value,
                  size_t value_n)
{
    struct pair *e = dt_xcalloc(1, sizeof *e + key_n + value_n + 2);
    struct pair **found;

    memcpy(e->text, key, key_n);
    memcpy(e->text + key_n + 1, value, value_n);
    e->key = e->text;
    e->value = e->text + key_n + 1;
    found = tsearch(e, &p->space, compare_pairs);
    if (!found) { /* out of memory: a get will find no such key */
        free(e);
    } else if (*found != e) { /* put again: the newest value counts */
        free(*found);
        *found = e;
    }
}

/* ---- lines ---- */

static void reply(struct dt_pmi *p, uint32_t rank, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void reply(struct dt_pmi *p, uint32_t rank, const char *format, ...)
{
    char line[DT_PMI_LINE_MAX];
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    line[n++] = '\n';
    p->ops.reply(p->arg, rank, line, (size_t)n);
}

/* Copies what follows "name=" in the line, up to the next blank. But "value=", the last word of
 * put, may have blanks in its value, which ends with the line. Returns false if the line has no
 * such word, or the value does not fit. */
static bool word_of(const char *line, const char *name, char *out, size_t size)
{
    size_t name_n = strlen(name), n;

    while (*line) {
        const char *end = line + strcspn(line, " ");

        if (strncmp(line, name, name_n) == 0 && line[name_n] == '=') {
            const char *value = line + name_n + 1;

            n = strcmp(name, "value") == 0 ? strlen(value) : (size_t)(end - value);
            if (n >= size)
                return false;
            memcpy(out, value, n);
            out[n] = '\0';
            return true;
        }
        line = end + strspn(end, " ");
    }
    return false;
}

static bool number_of(const char *line, const char *name, int *out)
{
    char text[16], *end;
    long n;

    if (!word_of(line, name, text, sizeof text))
        return false;
    n = strtol(text, &end, 10);
    if (end == text || *end || n < INT_MIN || n > INT_MAX)
        return false;
    *out = (int)n;
    return true;
}

/* ---- requests ---- */

static const char *on_init(struct dt_pmi *p, uint32_t rank, const char *line)
{
    int version;

    if (!number_of(line, "pmi_version", &version))
        return "it sends init without a version";
    p->clients[rank].greeted = version == 1;
    if (version == 1)
        p->ops.state(p->arg, rank, true);
    reply(p, rank, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=%d",
          version == 1 ? 0 : -1);
    return NULL;
}

static const char *on_get_name(struct dt_pmi *p, uint32_t rank, const char *line)
{
    (void)line;
    reply(p, rank, "cmd=my_kvsname rc=0 kvsname=%s", p->name);
    return NULL;
}

static const char *on_get_universe_size(struct dt_pmi *p, uint32_t rank, const char *line)
{
    (void)line;
    reply(p, rank, "cmd=universe_size rc=0 size=%u", p->universe);
    return NULL;
}

static const char *on_put(struct dt_pmi *p, uint32_t rank, const char *line)
{
    char key[DT_PMI_KEY_MAX], value[DT_PMI_VALUE_MAX];

    if (!word_of(line, "key", key, sizeof key) || !key[0] || strchr(key, '=') ||
        !word_of(line, "value", value, sizeof value)) {
        reply(p, rank, "cmd=put_result rc=-1 msg=key_or_value_too_long");
        return NULL;
    }
    if (p->clients[rank].puts++ >= DT_PMI_PUTS_MAX)
        return "it puts more data than the server has room for";
    dt_strbuf_printf(&p->puts, "%s=%s\n", key, value);
    reply(p, rank, "cmd=put_result rc=0 msg=success");
    return NULL;
}

static const char *on_get(struct dt_pmi *p, uint32_t rank, const char *line)
{
    char key[DT_PMI_KEY_MAX];
    const char *value = NULL;

    if (word_of(line, "key", key, sizeof key))
        value = strcmp(key, "PMI_process_mapping") == 0 ? p->mapping : find_value(p, key);
    if (value)
        reply(p, rank, "cmd=get_result rc=0 msg=success value=%s", value);
    else
        reply(p, rank, "cmd=get_result rc=-1 msg=key_not_found value=unknown");
    return NULL;
}

static const char *on_barrier_in(struct dt_pmi *p, uint32_t rank, const char *line)
{
    struct dt_strbuf puts;

    (void)line;
    if (p->clients[rank].in_barrier)
        return "it enters a barrier twice";
    p->clients[rank].in_barrier = true;
    if (++p->waiting < p->local_ranks)
        return NULL;
    puts = p->puts;
    p->puts = (struct dt_strbuf){ 0 };
    p->ops.fence(p->arg, dt_strbuf_text(&puts), puts.len);
    dt_strbuf_free(&puts);
    return NULL;
}

static const char *on_finalize(struct dt_pmi *p, uint32_t rank, const char *line)
{
    (void)line;
    p->ops.state(p->arg, rank, false);
    reply(p, rank, "cmd=finalize_ack rc=0");
    return NULL;
}

static const char *on_abort(struct dt_pmi *p, uint32_t rank, const char *line)
{
    int code = 1;

    p->clients[rank].aborted = true;
    number_of(line, "exitcode", &code);
    p->ops.abort(p->arg, rank, code);
    return NULL;
}

/* Name publishing and dynamic processes are not supported; these answers let MPI report it. */
static const struct request {
    const char *name;
    const char *(*serve)(struct dt_pmi *p, uint32_t rank, const char *line);
    const char *answer; /* if the request needs nothing but this answer */
} requests[] = {
    { "init", on_init, NULL },
    { "get_maxes", NULL, "cmd=maxes rc=0 kvsname_max=64 keylen_max=64 vallen_max=1024" },
    { "get_appnum", NULL, "cmd=appnum rc=0 appnum=0" },
    { "get_my_kvsname", on_get_name, NULL },
    { "get_universe_size", on_get_universe_size, NULL },
    { "put", on_put, NULL },
    { "get", on_get, NULL },
    { "barrier_in", on_barrier_in, NULL },
    { "finalize", on_finalize, NULL },
    { "abort", on_abort, NULL },
    { "publish_name", NULL, "cmd=publish_result rc=-1 msg=not_supported" },
    { "unpublish_name", NULL, "cmd=unpublish_result rc=-1 msg=not_supported" },
    { "lookup_name", NULL, "cmd=lookup_result rc=-1 msg=not_supported" },
};

_Static_assert(DT_PMI_KEY_MAX == 64 && DT_PMI_VALUE_MAX == 1024, "get_maxes states them");

static const struct request *request_of(const char *line)
{
    char name[32];

    if (!word_of(line, "cmd", name, sizeof name))
        return NULL;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        if (strcmp(name, requests[i].name) == 0)
            return &requests[i];
    }
    return NULL;
}

/* A spawn has several lines, from "mcmd=spawn" to "endcmd"; only the last one is answered. */
static const char *serve_spawn(struct dt_pmi *p, uint32_t rank, const char *line)
{
    struct client *c = &p->clients[rank];

    if (strcmp(line, "endcmd") == 0) {
        c->in_spawn = false;
        reply(p, rank, "cmd=spawn_result rc=-1 errmsg=dtrun_does_not_offer_MPI_Comm_spawn");
        p->ops.spawn_refused(p->arg, rank);
    }
    return NULL;
}

static const char *serve(struct dt_pmi *p, uint32_t rank, const char *line)
{
    struct client *c = &p->clients[rank];
    const struct request *r = request_of(line);

    if (!c->greeted && (!r || r->serve != on_init))
        return "it sends a request before init";
    if (c->in_spawn)
        return serve_spawn(p, rank, line);
    if (strcmp(line, "mcmd=spawn") == 0) {
        c->in_spawn = true;
        return NULL;
    }
    if (!r)
        return "it sends a request that PMI-1 does not define";
    if (r->serve)
        return r->serve(p, rank, line);
    reply(p, rank, "%s", r->answer);
    return NULL;
}

/* ---- the server ---- */

struct dt_pmi *dt_pmi_create(const struct dt_pmi_job *job, const struct dt_pmi_ops *ops, void *arg)
{
    struct dt_pmi *p = dt_xcalloc(1, sizeof *p);

    p->ops = *ops;
    p->arg = arg;
    p->name = dt_xstrdup(job->name);
    p->mapping = dt_xstrdup(job->mapping);
    p->universe = job->universe;
    p->local_ranks = job->local_ranks;
    p->clients = dt_xcalloc(job->local_ranks, sizeof *p->clients);
    return p;
}

void dt_pmi_destroy(struct dt_pmi *p)
{
    if (!p)
        return;
    tdestroy(p->space, free);
    dt_strbuf_free(&p->puts);
    free(p->clients);
    free(p->mapping);
    free(p->name);
    free(p);
}

const char *dt_pmi_input(struct dt_pmi *p, uint32_t local_rank, const char *bytes, size_t n)
{
    struct client *c = &p->clients[local_rank];
    const char *wrong = NULL;

    /* In MPICH 4.2, an abort gives its reason in more lines, which are no requests. */
    for (size_t i = 0; i < n && !wrong && !c->aborted; i++) {
        if (bytes[i] != '\n') {
            c->line[c->have++] = bytes[i];
            if (c->have == sizeof c->line || !bytes[i])
                wrong = "it sends a line that PMI-1 does not allow";
            continue;
        }
        c->line[c->have] = '\0';
        c->have = 0;
        wrong = serve(p, local_rank, c->line);
    }
    return wrong;
}

static bool store_all(struct dt_pmi *p, const char *data, size_t n)
{
    const char *end = data + n;

    while (data < end) {
        const char *line_end = memchr(data, '\n', (size_t)(end - data));
        const char *equals = line_end ? memchr(data, '=', (size_t)(line_end - data)) : NULL;

        if (!equals || equals == data || equals - data >= DT_PMI_KEY_MAX ||
            line_end - equals > DT_PMI_VALUE_MAX || memchr(data, 0, (size_t)(line_end - data)))
            return false;
        store(p, data, (size_t)(equals - data), equals + 1, (size_t)(line_end - equals - 1));
        data = line_end + 1;
    }
    return true;
}

bool dt_pmi_fenced(struct dt_pmi *p, const char *data, size_t n)
{
    if (p->waiting < p->local_ranks || !store_all(p, data, n))
        return false;
    p->waiting = 0;
    for (uint32_t i = 0; i < p->local_ranks; i++) {
        p->clients[i].in_barrier = false;
        p->clients[i].puts = 0;
    }
    for (uint32_t i = 0; i < p->local_ranks; i++)
        reply(p, i, "cmd=barrier_out rc=0 msg=success");
    return true;
}
