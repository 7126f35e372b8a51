/* A host list as one line of text, so that tables of cases can state what they expect:
 *     anna@host1:4/8 port=22 identity=KEY addr=A gpus=0,1 local; host2:1 */
#ifndef TESTS_UNIT_HOSTS_DESCRIBE_H
#define TESTS_UNIT_HOSTS_DESCRIBE_H

#include "launcher/base/strbuf.h"
#include "launcher/hosts/hostlist.h"

static void describe_host(struct dt_strbuf *b, const struct dt_host *h)
{
    dt_strbuf_printf(b, "%s%s%s:%d", h->user ? h->user : "", h->user ? "@" : "", h->name, h->slots);
    if (h->max_slots)
        dt_strbuf_printf(b, "/%d", h->max_slots);
    if (h->port)
        dt_strbuf_printf(b, " port=%d", h->port);
    if (h->identity)
        dt_strbuf_printf(b, " identity=%s", h->identity);
    if (h->addr)
        dt_strbuf_printf(b, " addr=%s", h->addr);
    if (h->gpus_given)
        dt_strbuf_puts(b, " gpus=");
    for (uint32_t i = 0; i < h->gpus.n; i++)
        dt_strbuf_printf(b, "%s%s", i ? "," : "", h->gpus.v[i]);
    if (h->local)
        dt_strbuf_puts(b, " local");
}

/* Replaces the contents of b and returns its text. */
static const char *describe(struct dt_strbuf *b, const struct dt_hostlist *list)
{
    dt_strbuf_consume(b, b->len);
    for (size_t i = 0; i < list->n; i++) {
        if (i)
            dt_strbuf_puts(b, "; ");
        describe_host(b, &list->v[i]);
    }
    return dt_strbuf_text(b);
}

#endif
