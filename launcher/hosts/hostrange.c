#include "launcher/hosts/hostrange.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "launcher/base/number.h"
#include "launcher/base/strbuf.h"
#include "launcher/hosts/hostlist.h"

enum { DIGITS_MAX = 9 }; /* any number with this many digits fits an int */

struct numbers { /* one item between brackets */
    int first;
    int last;
    int width;
};

struct range {
    const char *before; /* the text between the last range and this one */
    size_t nbefore;
    struct numbers *v;
    size_t n;
    size_t item; /* v[item] contains number, which the expansion has reached */
    int number;
};

struct pattern {
    struct range *v;
    size_t n;
    const char *after; /* the text after the last range */
    size_t names;      /* how many names the pattern stands for */
    size_t length;     /* of the longest name, as far as the pattern has been read */
};

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* from == to: the item is a single number. */
static int parse_numbers(struct numbers *n, const char *from, const char *to, struct dt_error *err)
{
    if (strlen(from) > DIGITS_MAX || strlen(to) > DIGITS_MAX ||
        dt_number_parse(from, 0, INT_MAX, &n->first, err) < 0 ||
        dt_number_parse(to, 0, INT_MAX, &n->last, err) < 0)
        return from == to
                   ? dt_error_usage(err, "[%.200s] is not a number", from)
                   : dt_error_usage(err, "[%.100s-%.100s] is not a range of numbers", from, to);
    if (n->first > n->last)
        return dt_error_usage(err, "[%s-%s] runs backwards", from, to);
    n->width = (int)strlen(from);
    return 0;
}

/* list is the text between brackets. */
static int parse_range(struct pattern *p, struct range *r, char *list, struct dt_error *err)
{
    size_t count = 0, width = 0;

    while (list) {
        char *from = strsep(&list, ",");
        char *to = strchr(from, '-');
        struct numbers n;

        if (to)
            *to++ = '\0';
        if (parse_numbers(&n, from, to ? to : from, err) < 0)
            return -1;
        count += (size_t)(n.last - n.first) + 1;
        if (count * p->names > DT_HOSTS_MAX)
            return dt_error_usage(err, "more than %d hosts", DT_HOSTS_MAX);
        width = larger(width, larger(strlen(from), strlen(to ? to : from)));
        r->v = dt_xrealloc(r->v, r->n + 1, sizeof *r->v);
        r->v[r->n++] = n;
    }
    p->names *= count;
    p->length += width;
    r->number = r->v[0].first;
    return 0;
}

static int add_length(struct pattern *p, size_t n, struct dt_error *err)
{
    p->length += n;
    if (p->length > DT_HOST_NAME_MAX)
        return dt_error_usage(err, "the name is longer than %d bytes", DT_HOST_NAME_MAX);
    return 0;
}

/* Every range adds to the length, so the limit on the length also bounds the number of ranges. */
static int parse(struct pattern *p, const char *text, struct dt_error *err)
{
    size_t plain;

    while (text[plain = strcspn(text, "[]")]) {
        const char *list = text + plain + 1, *close = strpbrk(list, "[]");
        char *copy;
        int rc;

        if (text[plain] == ']' || !close || *close == '[')
            return dt_error_usage(err, "a bracket is not matched");
        if (add_length(p, plain, err) < 0)
            return -1;
        p->v = dt_xrealloc(p->v, p->n + 1, sizeof *p->v);
        p->v[p->n++] = (struct range){ .before = text, .nbefore = plain };
        copy = dt_xstrndup(list, (size_t)(close - list));
        rc = parse_range(p, &p->v[p->n - 1], copy, err);
        free(copy);
        if (rc < 0)
            return -1;
        text = close + 1;
    }
    p->after = text;
    return add_length(p, plain, err);
}

static void add_name(struct dt_strs *names, const struct pattern *p)
{
    struct dt_strbuf b = { 0 };

    for (size_t i = 0; i < p->n; i++) {
        const struct range *r = &p->v[i];

        dt_strbuf_add(&b, r->before, r->nbefore);
        dt_strbuf_printf(&b, "%0*d", r->v[r->item].width, r->number);
    }
    dt_strbuf_puts(&b, p->after);
    dt_xstrs_add(names, dt_strbuf_text(&b));
    dt_strbuf_free(&b);
}

/* Returns false if the range starts over. */
static bool next_number(struct range *r)
{
    bool more = true;

    if (r->number < r->v[r->item].last) {
        r->number++;
        return true;
    }
    if (++r->item == r->n) {
        r->item = 0;
        more = false;
    }
    r->number = r->v[r->item].first;
    return more;
}

static bool next_name(struct pattern *p)
{
    for (size_t i = p->n; i > 0; i--)
        if (next_number(&p->v[i - 1]))
            return true;
    return false;
}

int dt_hostrange_expand(struct dt_strs *names, const char *text, struct dt_error *err)
{
    struct pattern p = { .names = 1 };
    int rc = parse(&p, text, err);

    if (rc == 0) {
        do
            add_name(names, &p);
        while (next_name(&p));
    }
    for (size_t i = 0; i < p.n; i++)
        free(p.v[i].v);
    free(p.v);
    return rc;
}
