#include "launcher/hosts/hostarg.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "launcher/hosts/hostword.h"

#define BLANKS " \t\r\n"

static int add_item(struct dt_hostlist *list, const char *item, struct dt_error *err)
{
    struct dt_host host = { .slots = 1 };
    struct dt_hostword w;
    int rc = 0;

    if (!*item)
        return dt_error_usage(err,
                              "a host is missing before or after a comma (a blank ends the list)");
    if (strpbrk(item, BLANKS))
        return dt_error_usage(err, "%s: a comma is missing between hosts", item);
    if (dt_hostword_parse(&w, item, err) < 0)
        return -1;
    host.user = w.user;
    if (w.slots >= 0) {
        host.slots = w.slots;
        host.slots_given = true;
    }
    for (uint32_t i = 0; i < w.names.n && rc == 0; i++)
        rc = dt_hostlist_put(list, w.names.v[i], &host, err);
    dt_hostword_free(&w);
    return rc;
}

/* Returns the length of the item at text: up to a comma outside brackets. */
static size_t item_length(const char *text)
{
    int depth = 0;
    size_t n;

    for (n = 0; text[n] && (text[n] != ',' || depth > 0); n++) {
        if (text[n] == '[')
            depth++;
        else if (text[n] == ']')
            depth--;
    }
    return n;
}

int dt_hostarg_list(struct dt_hostlist *list, const char *text, struct dt_error *err)
{
    int rc;

    do {
        size_t n = item_length(text), from = strspn(text, BLANKS), to = n;
        char *item;

        if (from > n)
            from = n;
        while (to > from && strchr(BLANKS, text[to - 1]))
            to--;
        item = dt_xstrndup(text + from, to - from);
        rc = add_item(list, item, err);
        free(item);
        text += n;
    } while (rc == 0 && *text++);
    return rc;
}

int dt_hostarg_parse(struct dt_hostlist *list, const char *text, struct dt_error *err)
{
    return dt_hostarg_list(list, text, err) < 0 ? dt_error_prefix(err, "-H: ") : 0;
}
