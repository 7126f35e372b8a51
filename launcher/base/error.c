#include "launcher/base/error.h"

#include <stdio.h>
#include <string.h>

static int error_vset(struct dt_error *err, const char *fmt, va_list ap)
{
    if (err)
        vsnprintf(err->text, sizeof err->text, fmt, ap);
    return -1;
}

int dt_error_set(struct dt_error *err, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    error_vset(err, fmt, ap);
    va_end(ap);
    return -1;
}

int dt_error_usage(struct dt_error *err, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    error_vset(err, fmt, ap);
    va_end(ap);
    if (err)
        err->exit_code = DT_EXIT_USAGE;
    return -1;
}

int dt_error_prefix(struct dt_error *err, const char *fmt, ...)
{
    char rest[DT_ERROR_SIZE];
    size_t used;
    va_list ap;

    if (!err)
        return -1;
    memcpy(rest, err->text, sizeof rest);
    va_start(ap, fmt);
    error_vset(err, fmt, ap);
    va_end(ap);
    used = strlen(err->text);
    snprintf(err->text + used, sizeof err->text - used, "%s", rest);
    return -1;
}
