#include "launcher/io/outfiles.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/base/mem.h"
#include "launcher/base/writeall.h"
#include "launcher/io/outname.h"

enum { CLOSED = -1 };

#define NOT_REGULAR "it is there and no regular file"

struct dt_outfiles {
    struct dt_outfiles_config config;
    size_t n;
    int *fds; /* nprocs of standard output, then nprocs of standard error unless merged */
};

size_t dt_outfiles_count(const struct dt_outfiles_config *config)
{
    return (config->merged ? 1 : 2) * (size_t)config->nprocs;
}

static char *name_of(const struct dt_outfiles *f, size_t i)
{
    const struct dt_outfiles_config *c = &f->config;
    uint32_t number = (uint32_t)(i % c->nprocs);

    return dt_outname_make(c->pattern, number, c->np, c->hosts[number],
                           i < c->nprocs ? ".out" : ".err");
}

/* Makes the first n bytes of path a directory, unless it is there. */
static int make_dir(char *path, size_t n, struct dt_error *err)
{
    char after = path[n];
    int rc = 0;

    path[n] = '\0';
    if (n > 0 && mkdir(path, 0777) < 0 && errno != EEXIST)
        rc = dt_error_set(err, "--output-dir: %s: %s", path, strerror(errno));
    path[n] = after;
    return rc;
}

static int make_parents(char *name, struct dt_error *err)
{
    for (char *slash = name; (slash = strchr(slash, '/')); slash++) {
        if (make_dir(name, (size_t)(slash - name), err) < 0)
            return -1;
    }
    return 0;
}

/* Without blocking: a FIFO of that name would wait for its reader. */
static int open_file(const char *name, struct dt_error *err)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
    struct stat st;

    if (fd < 0)
        return dt_error_set(err, "--output-dir: %s: %s", name, strerror(errno));
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return fd;
    close(fd);
    return dt_error_set(err, "--output-dir: %s: " NOT_REGULAR, name);
}

static int make_file(char *name, struct dt_error *err)
{
    return make_parents(name, err) < 0 ? -1 : open_file(name, err);
}

struct dt_outfiles *dt_outfiles_open(const struct dt_outfiles_config *config, struct dt_error *err)
{
    struct dt_outfiles *f = dt_xcalloc(1, sizeof *f);
    size_t count = dt_outfiles_count(config);
    char *ignored = NULL;

    f->config = *config;
    f->fds = dt_xcalloc(count, sizeof *f->fds);
    for (; f->n < count; f->n++) {
        char *name = name_of(f, f->n);

        f->fds[f->n] = make_file(name, err);
        free(name);
        if (f->fds[f->n] < 0) {
            dt_outfiles_close(f, &ignored);
            free(ignored);
            return NULL;
        }
    }
    return f;
}

/* Whether something of that name can be made where there is nothing, with the directories that are
 * missing above it. */
static int check_place(char *name, struct dt_error *err)
{
    char *slash = strrchr(name, '/');
    size_t n = slash ? (size_t)(slash - name) : 0;
    int rc = 0;

    if (slash)
        *slash = '\0';
    if (access(n ? name : slash ? "/" : ".", W_OK | X_OK) < 0)
        rc = errno;
    if (rc == ENOENT && n > 0)
        rc = check_place(name, err);
    if (slash)
        *slash = '/';
    return rc > 0 ? dt_error_set(err, "--output-dir: %s: %s", name, strerror(rc)) : rc;
}

static int check_file(char *name, struct dt_error *err)
{
    struct stat st;

    if (stat(name, &st) < 0)
        return errno == ENOENT ? check_place(name, err)
                               : dt_error_set(err, "--output-dir: %s: %s", name, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return dt_error_set(err, "--output-dir: %s: " NOT_REGULAR, name);
    if (access(name, W_OK) < 0)
        return dt_error_set(err, "--output-dir: %s: %s", name, strerror(errno));
    return 0;
}

int dt_outfiles_check(const struct dt_outfiles_config *config, struct dt_error *err)
{
    const struct dt_outfiles f = { .config = *config };
    int rc = 0;

    for (size_t i = 0; i < dt_outfiles_count(config) && rc == 0; i++) {
        char *name = name_of(&f, i);

        rc = check_file(name, err);
        free(name);
    }
    return rc;
}

int dt_outfiles_write(struct dt_outfiles *f, uint32_t number, int fd, const void *data, size_t n,
                      char **name)
{
    size_t i = (size_t)(fd == STDERR_FILENO) * f->config.nprocs + number;
    int error;

    if (number >= f->config.nprocs || i >= f->n || f->fds[i] == CLOSED ||
        dt_write_all(f->fds[i], data, n) == 0)
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
        free(f);
    }
    errno = error;
    return error ? -1 : 0;
}
