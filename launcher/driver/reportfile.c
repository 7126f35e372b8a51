#include "launcher/driver/reportfile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/base/mem.h"
#include "launcher/base/random.h"
#include "runtime/wire/writeall.h"

static int write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    int error = 0;

    if (fd < 0)
        return -1;
    if (dt_write_all(fd, text, strlen(text)) < 0 || dt_write_all(fd, "\n", 1) < 0 || fsync(fd) < 0)
        error = errno;
    if (close(fd) < 0 && !error)
        error = errno;
    if (!error)
        return 0;
    unlink(path);
    errno = error;
    return -1;
}

/* Returns which of dtrun's own descriptors refers to that file, as with /dev/stdout, or -1. */
static int own_output(const struct stat *st)
{
    struct stat ours;

    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fstat(fd, &ours) == 0 && ours.st_dev == st->st_dev && ours.st_ino == st->st_ino)
            return fd;
    }
    return -1;
}

/* If the file is dtrun's own output, the report must be written through that descriptor. Another
 * one would have an offset of its own, and later output would overwrite the report. With
 * O_NONBLOCK, opening a FIFO without a reader fails instead of waiting. */
static int open_stream(const char *path)
{
    struct stat st;
    int fd = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? own_output(&st) : -1;

    if (fd >= 0)
        return fcntl(fd, F_DUPFD_CLOEXEC, 0);
    fd = open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0)
        fcntl(fd, F_SETFL, O_APPEND);
    return fd;
}

static int write_stream(const char *path, const char *text)
{
    int fd = open_stream(path);
    int failed, saved;

    if (fd < 0)
        return -1;
    failed = dt_write_all(fd, text, strlen(text)) < 0 || dt_write_all(fd, "\n", 1) < 0;
    saved = errno;
    close(fd);
    errno = saved;
    return failed ? -1 : 0;
}

/* Returns a name in the directory of path. It is random, because dtruns in other containers or on
 * other hosts may have the same PID, and short, because the file's own name may be as long as the
 * file system allows. */
static char *temporary_name(const char *path)
{
    char *copy = dt_xstrdup(path), *name;
    uint64_t random;

    dt_random_fill(&random, sizeof random);
    name = dt_xasprintf("%s/.dtrun-report-%016" PRIx64 ".tmp", dirname(copy), random);
    free(copy);
    return name;
}

/* Renaming makes the file appear complete or not at all. */
static int replace_file(const char *path, const char *text)
{
    char *temporary = temporary_name(path);
    int rc = write_file(temporary, text), saved;

    if (rc == 0 && rename(temporary, path) < 0) {
        saved = errno;
        unlink(temporary);
        errno = saved;
        rc = -1;
    }
    free(temporary);
    return rc;
}

/* Devices, FIFOs and dtrun's own output (as with /dev/stdout) must be written to and never
 * replaced. */
static bool is_stream(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0 || S_ISDIR(st.st_mode))
        return false;
    return !S_ISREG(st.st_mode) || own_output(&st) >= 0;
}

enum link { NO_LINK, OWN_LINK, FOREIGN_LINK };

static enum link link_at(const char *path)
{
    struct stat st;

    if (lstat(path, &st) < 0 || !S_ISLNK(st.st_mode))
        return NO_LINK;
    return st.st_uid == geteuid() || st.st_uid == 0 ? OWN_LINK : FOREIGN_LINK;
}

/* In a directory like /tmp, another user may have made it so that dtrun replaces one of this user's
 * files. */
static int refuse_link(struct dt_error *err, const char *path)
{
    return dt_error_usage(err, "--report %s: it is a symbolic link of another user", path);
}

static int access_dir(const char *path, int mode)
{
    char *copy = dt_xstrdup(path);
    int rc = access(dirname(copy), mode);

    free(copy);
    return rc;
}

static int check_writable(const char *path)
{
    struct stat st;

    if (is_stream(path))
        return access(path, W_OK);
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        return -1;
    }
    if (lstat(path, &st) < 0 && errno == ENAMETOOLONG)
        return -1;
    return access_dir(path, W_OK | X_OK);
}

bool dt_report_has_dir(const char *path)
{
    return access_dir(path, F_OK) == 0;
}

int dt_report_check(const char *path, struct dt_error *err)
{
    if (link_at(path) == FOREIGN_LINK)
        return refuse_link(err, path);
    if (check_writable(path) == 0)
        return 0;
    return dt_error_usage(err, "--report %s: %s", path, strerror(errno));
}

int dt_report_write(const char *path, const char *text, struct dt_error *err)
{
    enum link link = link_at(path);
    char *target;
    int rc;

    if (link == FOREIGN_LINK)
        return refuse_link(err, path);
    target = link == OWN_LINK ? realpath(path, NULL) : NULL; /* replaces what a link names */
    rc = is_stream(path) ? write_stream(path, text) : replace_file(target ? target : path, text);
    if (rc < 0)
        dt_error_set(err, "--report %s: %s", path, strerror(errno));
    free(target);
    return rc;
}
