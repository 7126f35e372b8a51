#include "launcher/io/label.h"

#include <stdio.h>

/* Colours that are readable on light and dark backgrounds. */
static const int colours[] = { 36, 35, 32, 33, 34, 31 };

size_t dt_label(char out[DT_LABEL_MAX], uint32_t number, uint32_t np, bool colour)
{
    char name[DT_ROLE_NAME_MAX];

    if (number < np)
        snprintf(name, sizeof name, "%u", number);
    else
        dt_role_name(name, number, np);
    if (!colour)
        return (size_t)snprintf(out, DT_LABEL_MAX, "[%s] ", name);
    return (size_t)snprintf(out, DT_LABEL_MAX, "\033[%dm[%s]\033[0m ",
                            colours[number % (sizeof colours / sizeof *colours)], name);
}

size_t dt_label_time(char out[DT_LABEL_TIME_MAX], const struct timespec *t)
{
    struct tm tm = { 0 };
    size_t n;

    localtime_r(&t->tv_sec, &tm);
    n = strftime(out, DT_LABEL_TIME_MAX, "%Y-%m-%d %H:%M:%S", &tm);
    return n + (size_t)snprintf(out + n, DT_LABEL_TIME_MAX - n, ".%03ld ", t->tv_nsec / 1000000);
}
