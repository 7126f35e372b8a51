#include "launcher/hosts/hostfile.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "launcher/base/number.h"
#include "launcher/base/utf8.h"
#include "launcher/hosts/hostword.h"

#define BLANKS " \t\r\v\f"

struct line {
    struct dt_hostword word;
    struct dt_host host; /* what the line says about each host that word names */
    unsigned seen;       /* bit i: key i was given */
};

struct removal { /* a ^host line; it takes effect after all other lines */
    char *name;
    int line_number;
};

struct parser {
    struct dt_hostlist *list;
    struct removal *removals;
    size_t nremovals;
    int line_number;
};

static int set_slots(struct line *l, const char *value, struct dt_error *err)
{
    if (l->word.slots >= 0)
        return dt_error_usage(err, "the slots are given twice");
    l->host.slots_given = true;
    return dt_number_parse(value, 0, DT_SLOTS_MAX, &l->host.slots, err);
}

static int set_max_slots(struct line *l, const char *value, struct dt_error *err)
{
    return dt_number_parse(value, 1, DT_SLOTS_MAX, &l->host.max_slots, err);
}

/* A device is a number, a UUID or a MIG name. As in CUDA_VISIBLE_DEVICES, -1 hides all devices. */
static bool is_device(const char *s)
{
    if (strcmp(s, "-1") == 0)
        return true;
    if (s[strspn(s, "0123456789")] == '\0')
        return *s != '\0';
    return (strncmp(s, "GPU-", 4) == 0 || strncmp(s, "MIG-", 4) == 0) && !strpbrk(s, "=,\"'\\;$`");
}

static int set_gpus(struct line *l, const char *value, struct dt_error *err)
{
    char *copy = dt_xstrdup(value), *rest = *copy ? copy : NULL, *device;
    int rc = 0;

    l->host.gpus_given = true;
    while (rc == 0 && (device = strsep(&rest, ","))) {
        if (is_device(device))
            dt_xstrs_add(&l->host.gpus, device);
        else
            rc = dt_error_usage(err, "numbers or UUIDs of GPUs were expected, as in 0,2,3");
    }
    free(copy);
    return rc;
}

static int set_user(struct line *l, const char *value, struct dt_error *err)
{
    if (l->word.user)
        return dt_error_usage(err, "the user is given twice");
    l->host.user = dt_xstrdup(value);
    return dt_hostword_check_user(value, err);
}

static int set_port(struct line *l, const char *value, struct dt_error *err)
{
    return dt_number_parse(value, 1, 65535, &l->host.port, err);
}

static int set_identity(struct line *l, const char *value, struct dt_error *err)
{
    l->host.identity = dt_xstrdup(value);
    return *value ? 0 : dt_error_usage(err, "the name of a key file was expected");
}

static int set_addr(struct line *l, const char *value, struct dt_error *err)
{
    unsigned char parsed[sizeof(struct in6_addr)];

    if (inet_pton(AF_INET, value, parsed) != 1 && inet_pton(AF_INET6, value, parsed) != 1)
        return dt_error_usage(err, "an IPv4 or IPv6 address was expected");
    if (l->word.names.n > 1)
        return dt_error_usage(err, "%u hosts cannot have one address", l->word.names.n);
    l->host.addr = dt_xstrdup(value);
    return 0;
}

#define KEYS(X)   X(slots) X(max_slots) X(gpus) X(user) X(port) X(identity) X(addr)
#define ROW(key)  { #key, set_##key },
#define NAME(key) " " #key

static const struct key {
    const char *name;
    int (*set)(struct line *l, const char *value, struct dt_error *err);
} keys[] = { KEYS(ROW) };

/* Open MPI's other names for keys. */
static const struct alias {
    const char *name;
    const char *key;
} aliases[] = {
    { "cpu", "slots" },           { "count", "slots" },       { "slots_max", "max_slots" },
    { "cpu_max", "max_slots" },   { "max_cpu", "max_slots" }, { "count_max", "max_slots" },
    { "max_count", "max_slots" }, { "username", "user" },     { "user_name", "user" },
};

/* Open MPI writes max-slots as well as max_slots. */
static bool is_key(const char *key, const char *name)
{
    while (*key && (*name == *key || (*name == '-' && *key == '_'))) {
        key++;
        name++;
    }
    return !*key && !*name;
}

/* Returns the index of the key that name stands for, or -1. */
static int find_key(const char *name)
{
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (is_key(aliases[i].name, name))
            name = aliases[i].key;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (is_key(keys[i].name, name))
            return (int)i;
    return -1;
}

static int set_key(struct line *l, const char *name, const char *value, struct dt_error *err)
{
    int i = find_key(name);

    if (i < 0)
        return dt_error_usage(err, "%.200s= is unknown; known are:" KEYS(NAME), name);
    if (l->seen & 1u << i)
        return is_key(keys[i].name, name)
                   ? dt_error_usage(err, "%s= is given twice", keys[i].name)
                   : dt_error_usage(err, "%s= is given twice, once as %s=", keys[i].name, name);
    l->seen |= 1u << i;
    if (keys[i].set(l, value, err) < 0)
        return dt_error_prefix(err, "%s=%.200s: ", name, value);
    return 0;
}

/* Cuts off the word at *at, and advances *at to the next one. */
static char *take_word(char **at)
{
    char *word = *at;
    size_t n = strcspn(word, BLANKS);

    *at = word + n + strspn(word + n, BLANKS);
    word[n] = '\0';
    return word;
}

static int parse_keys(struct line *l, char *at, struct dt_error *err)
{
    while (*at) {
        size_t n = strcspn(at, BLANKS "="), gap = strspn(at + n, BLANKS);
        char *name = at, *value;

        if (n && strspn(at, "0123456789") == n && at[n + gap] != '=')
            return dt_error_usage(err, "%.*s: slots=%.*s was expected", (int)n, at, (int)n, at);
        if (n == 0 || at[n + gap] != '=')
            return dt_error_usage(err, "%.*s: key=value was expected; keys are:" KEYS(NAME), (int)n,
                                  at);
        at += n + gap + 1;
        at += strspn(at, BLANKS);
        name[n] = '\0';
        value = take_word(&at);
        if (set_key(l, name, value, err) < 0)
            return -1;
    }
    return 0;
}

/* Fills in the values that follow from the given ones. */
static int complete(struct line *l, struct dt_error *err)
{
    struct dt_host *h = &l->host;

    if (l->word.slots >= 0) {
        h->slots = l->word.slots;
        h->slots_given = true;
    }
    if (!h->slots_given)
        h->slots = h->gpus.n ? (int)h->gpus.n : 1;
    if (h->max_slots && h->max_slots < h->slots)
        return dt_error_usage(err, "max_slots=%d is less than the %d slots", h->max_slots,
                              h->slots);
    if (l->word.user)
        h->user = dt_xstrdup(l->word.user);
    return 0;
}

static int parse_host(struct parser *p, char *text, struct dt_error *err)
{
    struct line l = { .seen = 0 };
    int rc = dt_hostword_parse(&l.word, take_word(&text), err);

    if (rc == 0)
        rc = parse_keys(&l, text, err);
    if (rc == 0)
        rc = complete(&l, err);
    for (uint32_t i = 0; i < l.word.names.n && rc == 0; i++)
        rc = dt_hostlist_put(p->list, l.word.names.v[i], &l.host, err);
    dt_hostword_free(&l.word);
    dt_host_free(&l.host);
    return rc;
}

static int add_removals(struct parser *p, const struct dt_strs *names, struct dt_error *err)
{
    if (p->nremovals + names->n > DT_HOSTS_MAX)
        return dt_error_usage(err, "more than %d hosts are removed", DT_HOSTS_MAX);
    p->removals = dt_xrealloc(p->removals, p->nremovals + names->n, sizeof *p->removals);
    for (uint32_t i = 0; i < names->n; i++)
        p->removals[p->nremovals++] =
            (struct removal){ .name = dt_xstrdup(names->v[i]), .line_number = p->line_number };
    return 0;
}

static int parse_removal(struct parser *p, char *text, struct dt_error *err)
{
    struct dt_hostword w;
    char *name = take_word(&text);
    int rc;

    if (*text)
        return dt_error_usage(err, "^%s removes a host; nothing may follow", name);
    if (dt_hostword_parse(&w, name, err) < 0)
        return -1;
    if (w.user || w.slots >= 0)
        rc = dt_error_usage(err, "^%s: only the host's name is used to remove it", name);
    else
        rc = add_removals(p, &w.names, err);
    dt_hostword_free(&w);
    return rc;
}

static int parse_line(struct parser *p, char *text, struct dt_error *err)
{
    char *end;

    text[strcspn(text, "#")] = '\0';
    text += strspn(text, BLANKS);
    end = text + strlen(text);
    while (end > text && strchr(BLANKS, end[-1]))
        *--end = '\0';
    if (!*text)
        return 0;
    return *text == '^' ? parse_removal(p, text + 1, err) : parse_host(p, text, err);
}

static int parse_lines(struct parser *p, const char *text, size_t n, struct dt_error *err)
{
    const char *end = text + n;
    int rc = 0;

    while (text < end && rc == 0) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t length = (size_t)((newline ? newline : end) - text);
        char *line = dt_xstrndup(text, length);

        p->line_number++;
        if (memchr(text, '\0', length))
            rc = dt_error_usage(err, "it contains a NUL byte, so it is not a text file");
        else
            rc = parse_line(p, line, err);
        free(line);
        text += length + 1;
    }
    return rc;
}

static int apply_removals(struct parser *p, struct dt_error *err)
{
    for (size_t i = 0; i < p->nremovals; i++) {
        struct dt_host *host = dt_hostlist_find(p->list, p->removals[i].name);

        if (!host) {
            p->line_number = p->removals[i].line_number;
            return dt_error_usage(err, "^%s: no line of this file names that host",
                                  p->removals[i].name);
        }
        host->removed = true;
    }
    dt_hostlist_drop_removed(p->list);
    return 0;
}

int dt_hostfile_parse(struct dt_hostlist *list, const char *name, const char *text, size_t n,
                      struct dt_error *err)
{
    struct parser p = { .list = list };
    size_t bom = dt_utf8_bom_size(text, n);
    int rc = parse_lines(&p, text + bom, n - bom, err);

    if (rc == 0)
        rc = apply_removals(&p, err);
    if (rc < 0)
        dt_error_prefix(err, "%s:%d: ", name, p.line_number);
    else if (!list->n)
        rc = dt_error_usage(err, "%s: the file names no host", name);
    for (size_t i = 0; i < p.nremovals; i++)
        free(p.removals[i].name);
    free(p.removals);
    return rc;
}
