#include "launcher/io/outname.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "launcher/base/strbuf.h"
#include "launcher/place/role.h"

enum { DIGITS_MIN = 5 };

static bool names_ranks(const char *pattern)
{
    for (; (pattern = strchr(pattern, '%')); pattern += 2) {
        if (pattern[1] == 'r')
            return true;
    }
    return false;
}

int dt_outname_check(const char *pattern, struct dt_error *err)
{
    for (const char *p = pattern; (p = strchr(p, '%')); p += 2) {
        if (!p[1] || !strchr("rh%", p[1]))
            return dt_error_usage(err,
                                  "--output-dir %s: %.2s is unknown: there are %%r (rank), %%h "
                                  "(host) and %%%% (a percent sign)",
                                  pattern, p);
    }
    if (names_ranks(pattern) && pattern[strlen(pattern) - 1] == '/')
        return dt_error_usage(err, "--output-dir %s: no file name after the last slash", pattern);
    return 0;
}

static void expand(struct dt_strbuf *name, const char *pattern, const char *process,
                   const char *host)
{
    for (; *pattern; pattern++) {
        if (*pattern != '%') {
            dt_strbuf_add(name, pattern, 1);
            continue;
        }
        switch (*++pattern) {
        case 'r':
            dt_strbuf_puts(name, process);
            break;
        case 'h':
            dt_strbuf_puts(name, host);
            break;
        default:
            dt_strbuf_puts(name, "%");
        }
    }
}

char *dt_outname_make(const char *pattern, uint32_t number, uint32_t np, const char *host,
                      const char *suffix)
{
    int digits = snprintf(NULL, 0, "%u", np - 1);
    struct dt_role role = dt_role_of(number, np);
    struct dt_strbuf name = { 0 };
    char process[DT_ROLE_NAME_MAX];

    digits = digits < DIGITS_MIN ? DIGITS_MIN : digits;
    if (role.kind == DT_ROLE_SCHEDULER)
        snprintf(process, sizeof process, "scheduler");
    else
        snprintf(process, sizeof process, "%s%0*u", role.kind == DT_ROLE_SERVER ? "server." : "",
                 digits, role.index);
    expand(&name, pattern, process, host);
    if (!names_ranks(pattern))
        expand(&name, role.kind == DT_ROLE_RANK ? "/rank.%r" : "/%r", process, host);
    dt_strbuf_puts(&name, suffix);
    return dt_strbuf_take(&name);
}

size_t dt_outname_base(const char *pattern)
{
    size_t n = strcspn(pattern, "%");

    if (!pattern[n])
        return n;
    while (n > 0 && pattern[n - 1] != '/')
        n--;
    return n > 1 ? n - 1 : n;
}
