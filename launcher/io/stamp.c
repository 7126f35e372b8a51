#include "launcher/io/stamp.h"

#include <stdio.h>

size_t dt_stamp(char out[DT_STAMP_MAX], const struct timespec *t)
{
    struct tm tm = { 0 };
    size_t n;

    localtime_r(&t->tv_sec, &tm);
    n = strftime(out, DT_STAMP_MAX, "%Y-%m-%d %H:%M:%S", &tm);
    return n + (size_t)snprintf(out + n, DT_STAMP_MAX - n, ".%03ld ", t->tv_nsec / 1000000);
}
