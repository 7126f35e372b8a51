#include "launcher/base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is too long is usually a value that the user typed. The reason comes after it. */
enum { TAIL = 400, HEAD = DT_ERROR_SIZE - TAIL - (int)sizeof "..." };

static void shorten_into(struct dt_error *err, const char *text)
{
    size_t n = strlen(text);

    if (n < sizeof err->text)
        memcpy(err->text, text, n + 1);
    else
        snprintf(err->text, sizeof err->text, "%.*s...%s", HEAD, text, text + n - TAIL);
}

int dt_error_vset(struct dt_error *err, const char *fmt, va_list ap)
{
    char *text;

    if (!err)
        return -1;
    if (vasprintf(&text, fmt, ap) < 0)
        text = NULL;
    shorten_into(err, text ? text : "out of memory");
    free(text);
    return -1;
}

int dt_error_set(struct dt_error *err, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    dt_error_vset(err, fmt, ap);
    va_end(ap);
    return -1;
}

int dt_error_usage(struct dt_error *err, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    dt_error_vset(err, fmt, ap);
    va_end(ap);
    if (err)
        err->exit_code = DT_EXIT_USAGE;
    return -1;
}

int dt_error_prefix(struct dt_error *err, const char *fmt, ...)
{
    char rest[DT_ERROR_SIZE];
    char text[2 * DT_ERROR_SIZE];
    va_list ap;

    if (!err)
        return -1;
    memcpy(rest, err->text, sizeof rest);
    va_start(ap, fmt);
    dt_error_vset(err, fmt, ap);
    va_end(ap);
    snprintf(text, sizeof text, "%s%s", err->text, rest);
    shorten_into(err, text);
    return -1;
}
