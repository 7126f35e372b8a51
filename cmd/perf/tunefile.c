#include "cmd/perf/tunefile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/tuningfile.h"

/* ---- its text ---- */

static bool sets(const char *line, const struct dt_perf_threshold *t)
{
    char name[64];
    unsigned number = 0;

    return sscanf(line, " %63[a-z_] [%u", name, &number) >= 1 && strcmp(name, t->name) == 0 &&
           number == t->number;
}

static bool is_replaced(const char *line, const struct dt_perf_threshold *set, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (sets(line, &set[i]))
            return true;
    }
    return false;
}

static void write_threshold(FILE *f, const struct dt_perf_threshold *t)
{
    fputs(t->name, f);
    if (t->number)
        fprintf(f, "[%" PRIu32 "]", t->number);
    fprintf(f, " = %" PRIu64 " # %s\n", t->value, t->comment);
}

static void write_kept(FILE *f, const char *old, const struct dt_perf_threshold *set, size_t n)
{
    for (const char *line = old; *line;) {
        size_t bytes = strcspn(line, "\n");
        char copy[256];

        snprintf(copy, sizeof copy, "%.*s", (int)(bytes < 255 ? bytes : 255), line);
        if (!is_replaced(copy, set, n))
            fprintf(f, "%.*s\n", (int)bytes, line);
        line += bytes + (line[bytes] == '\n');
    }
}

char *dt_perf_merge(const char *old, const struct dt_perf_threshold *set, size_t n)
{
    char *text = NULL;
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);

    if (!f)
        return NULL;
    if (old)
        write_kept(f, old, set, n);
    else
        fputs("# Thresholds of dtrun's collectives; dtrun-tuning(5) has their names.\n", f);
    for (size_t i = 0; i < n; i++)
        write_threshold(f, &set[i]);
    if (fclose(f) == 0)
        return text;
    free(text);
    return NULL;
}

/* ---- the file ---- */

/* Returns the file's text, or NULL with errno (ENOENT if it does not exist). */
static char *read_old(const char *path)
{
    char *text = NULL;
    size_t room = 0;
    FILE *f = fopen(path, "re");

    if (!f)
        return NULL;
    errno = 0;
    if (getdelim(&text, &room, '\0', f) < 0 && errno == 0 && text)
        *text = '\0'; /* the file is empty */
    else if (errno) {
        free(text);
        text = NULL;
    }
    fclose(f);
    return text;
}

static void make_directories(char *path)
{
    for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        mkdir(path, 0777);
        *at = '/';
    }
}

/* Closes fd. */
static bool fill(int fd, const char *text)
{
    FILE *f = fdopen(fd, "w");
    bool good;

    if (!f) {
        close(fd);
        return false;
    }
    good = fputs(text, f) >= 0 && fflush(f) == 0 && fchmod(fd, 0644) == 0 && fsync(fd) == 0;
    return fclose(f) == 0 && good;
}

enum { FRESH_PATH = DT_TUNINGFILE_PATH + 8 };

/* Creates a file beside the one at path. Returns its descriptor, or -1. */
static int make_fresh(char fresh[FRESH_PATH], const char *path)
{
    snprintf(fresh, FRESH_PATH, "%s.XXXXXX", path);
    return mkostemp(fresh, O_CLOEXEC);
}

/* If this fails, the old file stays as it is. */
static bool replace(const char *path, const char *text)
{
    char fresh[FRESH_PATH];
    int fd = make_fresh(fresh, path);
    bool good;

    if (fd < 0)
        return false;
    good = fill(fd, text) && rename(fresh, path) == 0;
    if (!good) {
        int saved = errno;

        unlink(fresh);
        errno = saved;
    }
    return good;
}

/* Does what replace does, up to the point where it would change something. */
static bool may_replace(const char *path)
{
    char fresh[FRESH_PATH];
    int fd = make_fresh(fresh, path);

    if (fd < 0)
        return false;
    unlink(fresh);
    close(fd);
    return true;
}

/* Follows links, so that the link itself stays. text NULL: only checks whether it is possible. */
static bool replace_target(const char *path, const char *text)
{
    char *target = realpath(path, NULL);
    const char *file = target ? target : path;
    bool good = text ? replace(file, text) : may_replace(file);

    free(target);
    return good;
}

/* If a file replaced a device such as /dev/null, all programs would lose the device. For a
 * directory the kernel itself reports the error. */
static bool may_be_replaced(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
        return true;
    errno = EINVAL;
    return false;
}

/* Returns false, with errno, if it must not be written. */
static bool read_replaceable(const char *path, char **old)
{
    *old = NULL;
    if (!may_be_replaced(path))
        return false;
    *old = read_old(path);
    return *old || errno == ENOENT;
}

bool dt_perf_may_write_thresholds(char *path)
{
    char *old;
    bool good = read_replaceable(path, &old);

    free(old);
    if (!good)
        return false;
    make_directories(path);
    return replace_target(path, NULL);
}

bool dt_perf_write_thresholds(char *path, const struct dt_perf_threshold *set, size_t n)
{
    char *old, *text;
    bool good;

    if (!read_replaceable(path, &old))
        return false;
    text = dt_perf_merge(old, set, n);
    make_directories(path);
    good = text && replace_target(path, text);
    free(old);
    free(text);
    return good;
}
