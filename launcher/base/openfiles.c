#include "launcher/base/openfiles.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

static uint64_t limit_before; /* 0: it was not raised */

int dt_openfiles_need(uint64_t n, const char *what, struct dt_error *err)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= n)
        return 0;
    if (limit.rlim_max < n)
        return dt_error_set(err, "%s: %llu open files are needed, and ulimit -Hn allows %llu", what,
                            (unsigned long long)n, (unsigned long long)limit.rlim_max);
    limit_before = limit_before ? limit_before : limit.rlim_cur;
    limit.rlim_cur = n;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        return dt_error_set(err, "%s: ulimit -n %llu: %s", what, (unsigned long long)n,
                            strerror(errno));
    return 0;
}

uint64_t dt_openfiles_before(void)
{
    return limit_before;
}

unsigned dt_openfiles_for_strangers(unsigned most)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur / 4 >= most)
        return most;
    return (unsigned)limit.rlim_cur / 4 + 1;
}

void dt_openfiles_lower(uint64_t n)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur < n)
        return;
    limit.rlim_cur = n;
    setrlimit(RLIMIT_NOFILE, &limit);
}
