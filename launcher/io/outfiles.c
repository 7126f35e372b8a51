#include "launcher/io/outfiles.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/base/mem.h"
#include "launcher/base/writeall.h"

enum { CLOSED = -1, DIGITS_MIN = 5 };

struct dt_outfiles {
    char *dir;
    uint32_t np;
    size_t n;
    int *fds; /* np of standard output, then np of standard error unless merged */
};

static char *name_of(const struct dt_outfiles *f, size_t i)
{
    int digits = snprintf(NULL, 0, "%u", f->np - 1);

    return dt_xasprintf("%s/rank.%0*zu.%s", f->dir, digits < DIGITS_MIN ? DIGITS_MIN : digits,
                        i % f->np, i < f->np ? "out" : "err");
}

/* Without blocking: a FIFO of that name would wait for its reader. */
static int open_file(const char *name, struct dt_error *err)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
    struct stat st;

    if (fd < 0)
        return dt_error_set(err, "--output-dir: %s: %s%s", name, strerror(errno),
                            errno == EMFILE ? "; a job has two open files per rank, see ulimit -n"
                                            : "");
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return fd;
    close(fd);
    return dt_error_set(err, "--output-dir: %s: it is there and no regular file", name);
}

struct dt_outfiles *dt_outfiles_open(const char *dir, uint32_t np, bool merged,
                                     struct dt_error *err)
{
    struct dt_outfiles *f;
    char *ignored = NULL;

    if (mkdir(dir, 0777) < 0 && errno != EEXIST) {
        dt_error_set(err, "--output-dir: %s: %s", dir, strerror(errno));
        return NULL;
    }
    f = dt_xcalloc(1, sizeof *f);
    f->dir = dt_xstrdup(dir);
    f->np = np;
    f->fds = dt_xcalloc(2 * (size_t)np, sizeof *f->fds);
    for (; f->n < (merged ? 1 : 2) * (size_t)np; f->n++) {
        char *name = name_of(f, f->n);

        f->fds[f->n] = open_file(name, err);
        free(name);
        if (f->fds[f->n] < 0) {
            dt_outfiles_close(f, &ignored);
            free(ignored);
            return NULL;
        }
    }
    return f;
}

int dt_outfiles_write(struct dt_outfiles *f, uint32_t rank, int fd, const void *data, size_t n,
                      char **name)
{
    size_t i = (size_t)(fd == STDERR_FILENO) * f->np + rank;
    int error;

    if (rank >= f->np || i >= f->n || f->fds[i] == CLOSED || dt_write_all(f->fds[i], data, n) == 0)
        return 0;
    error = errno;
    close(f->fds[i]);
    f->fds[i] = CLOSED;
    *name = name_of(f, i);
    errno = error;
    return -1;
}

int dt_outfiles_close(struct dt_outfiles *f, char **name)
{
    int error = 0;

    for (size_t i = 0; f && i < f->n; i++) {
        if (f->fds[i] == CLOSED || close(f->fds[i]) == 0 || error)
            continue;
        error = errno;
        *name = name_of(f, i);
    }
    if (f) {
        free(f->fds);
        free(f->dir);
        free(f);
    }
    errno = error;
    return error ? -1 : 0;
}
