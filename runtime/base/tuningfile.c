#include "runtime/base/tuningfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/wire/env.h"

enum { WARNINGS = 8, TEXT = 500 };

static const char for_all[] = "/etc/dtrun/tuning";

bool dt_tuningfile_own(char path[DT_TUNINGFILE_PATH])
{
    const char *home = getenv("HOME");
    int n = home && *home ? snprintf(path, DT_TUNINGFILE_PATH, "%s/.config/dtrun/tuning", home)
                          : DT_TUNINGFILE_PATH;

    return n < DT_TUNINGFILE_PATH;
}

enum dt_tuningfile_found dt_tuningfile_find(char path[DT_TUNINGFILE_PATH])
{
    const char *name = getenv(DT_ENV_TUNING);

    if (name && !*name)
        return DT_TUNINGFILE_NONE;
    if (name)
        return snprintf(path, DT_TUNINGFILE_PATH, "%s", name) < DT_TUNINGFILE_PATH
                   ? DT_TUNINGFILE_NAMED
                   : DT_TUNINGFILE_TOO_LONG;
    if (dt_tuningfile_own(path) && access(path, F_OK) == 0)
        return DT_TUNINGFILE_THERE;
    memcpy(path, for_all, sizeof for_all);
    return access(path, F_OK) == 0 ? DT_TUNINGFILE_THERE : DT_TUNINGFILE_NONE;
}

struct reading {
    const char *path;
    unsigned refused;
    void (*warn)(void *arg, const char *text);
    void *arg;
};

static void refuse(void *arg, unsigned line, const char *why)
{
    struct reading *r = arg;
    char text[TEXT];

    if (++r->refused > WARNINGS)
        return;
    if (r->refused < WARNINGS)
        snprintf(text, sizeof text, "%.200s:%u: %s: this line is ignored", r->path, line, why);
    else
        snprintf(text, sizeof text, "%.200s:%u: there are more wrong lines", r->path, line);
    r->warn(r->arg, text);
}

/* Returns the bytes read, or -1 with errno. Never waits for a pipe or a device. */
static ssize_t slurp(const char *path, char *text, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    ssize_t n, got = -1;

    if (fd < 0)
        return -1;
    errno = EINVAL;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        got = 0;
        while ((n = read(fd, text + got, room - (size_t)got)) > 0)
            got += n;
        got = n < 0 ? -1 : got;
    }
    int saved = errno;
    close(fd);
    errno = saved;
    return got;
}

static const char *cause(int error)
{
    return error == EINVAL ? "this is not a regular file" : strerror(error);
}

static void read_from(const char *path, bool named, struct dt_tuning_table *table,
                      void (*warn)(void *arg, const char *text), void *arg)
{
    struct reading r = { .path = path, .warn = warn, .arg = arg };
    char *text = malloc(DT_TUNINGFILE_BYTES + 1);
    ssize_t n = text ? slurp(path, text, DT_TUNINGFILE_BYTES + 1) : -1;
    char why[TEXT];

    if (n < 0)
        snprintf(why, sizeof why, "%.200s: %s: the built-in thresholds are used%s", path,
                 cause(errno), named ? " (" DT_ENV_TUNING " names this file)" : "");
    else if (n > DT_TUNINGFILE_BYTES)
        snprintf(why, sizeof why, "%.200s: more than 64 KiB: the built-in thresholds are used",
                 path);
    else
        dt_tuning_read(table, text, (size_t)n, refuse, &r);
    if (n < 0 || n > DT_TUNINGFILE_BYTES)
        warn(arg, why);
    free(text);
}

/* On Intel's servers each core keeps what it has written in a cache of its own. */
static bool is_sharing_slow(void)
{
#ifdef __x86_64__
    return __builtin_cpu_is("intel");
#else
    return false;
#endif
}

void dt_tuningfile_read(struct dt_tuning_table *table, void (*warn)(void *arg, const char *text),
                        void *arg)
{
    char path[DT_TUNINGFILE_PATH];
    enum dt_tuningfile_found found = dt_tuningfile_find(path);

    table->slow_sharing = is_sharing_slow();
    if (found == DT_TUNINGFILE_TOO_LONG)
        warn(arg, DT_TUNINGFILE_TOO_LONG_TEXT ": the built-in thresholds are used");
    else if (found != DT_TUNINGFILE_NONE)
        read_from(path, found == DT_TUNINGFILE_NAMED, table, warn, arg);
}
