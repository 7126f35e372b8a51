#include "launcher/hosts/hostrange.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "launcher/base/number.h"
#include "launcher/hosts/hostlist.h"

enum { DIGITS_MAX = 9 }; /* any such number is an int */

static int expand(struct dt_strs *names, const char *done, const char *rest, struct dt_error *err);

/* from and to are digits; every number between them takes the place of the range. */
static int expand_numbers(struct dt_strs *names, const char *done, const char *from, const char *to,
                          const char *rest, struct dt_error *err)
{
    int first, last, rc = 0;

    if (strlen(from) > DIGITS_MAX || strlen(to) > DIGITS_MAX ||
        dt_number_parse(from, 0, INT_MAX, &first, err) < 0 ||
        dt_number_parse(to, 0, INT_MAX, &last, err) < 0)
        return from == to ? dt_error_usage(err, "[%s] is no number", from)
                          : dt_error_usage(err, "[%s-%s] is no range of numbers", from, to);
    if (first > last)
        return dt_error_usage(err, "[%s-%s] runs backwards", from, to);
    for (int i = first; i <= last && rc == 0; i++) {
        char *name = dt_xasprintf("%s%0*d", done, (int)strlen(from), i);

        rc = expand(names, name, rest, err);
        free(name);
    }
    return rc;
}

/* list: what stands between brackets. */
static int expand_list(struct dt_strs *names, const char *done, char *list, const char *rest,
                       struct dt_error *err)
{
    int rc = 0;

    while (list && rc == 0) {
        char *item = strsep(&list, ",");
        char *dash = strchr(item, '-');

        if (dash)
            *dash++ = '\0';
        rc = expand_numbers(names, done, item, dash ? dash : item, rest, err);
    }
    return rc;
}

/* done: the name so far; rest: the pattern that follows it. */
static int expand(struct dt_strs *names, const char *done, const char *rest, struct dt_error *err)
{
    size_t plain = strcspn(rest, "[]");
    const char *close;
    char *prefix, *list;
    int rc;

    if (names->n >= DT_HOSTS_MAX)
        return dt_error_usage(err, "more than %d hosts", DT_HOSTS_MAX);
    prefix = dt_xasprintf("%s%.*s", done, (int)plain, rest);
    close = strpbrk(rest[plain] ? rest + plain + 1 : "", "[]");
    if (!rest[plain]) {
        dt_xstrs_add(names, prefix);
        rc = 0;
    } else if (rest[plain] == '[' && close && *close == ']') {
        list = dt_xstrndup(rest + plain + 1, (size_t)(close - (rest + plain + 1)));
        rc = expand_list(names, prefix, list, close + 1, err);
        free(list);
    } else {
        rc = dt_error_usage(err, "a bracket has no partner");
    }
    free(prefix);
    return rc;
}

int dt_hostrange_expand(struct dt_strs *names, const char *pattern, struct dt_error *err)
{
    return expand(names, "", pattern, err);
}
