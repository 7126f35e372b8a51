#include "launcher/io/outfiles.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/base/clock.h"
#include "launcher/base/mem.h"
#include "launcher/io/filewriter.h"
#include "launcher/io/outname.h"

#define NOT_REGULAR "it exists and is not a regular file"

struct outfile {
    struct dt_outfiles *files;
    int fd;
    bool failed;
    struct dt_filewriter_file *queue;
};

struct dt_outfiles {
    struct dt_outfiles_config config;
    struct dt_outfiles_events events;
    void *arg;
    struct dt_filewriter *writer;
    size_t pending;    /* bytes that are neither written nor dropped */
    uint64_t moved_ns; /* when some last were, or the first of them came */
    size_t n;
    /* nprocs files of standard output, then nprocs of standard error unless merged. */
    struct outfile *v;
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

/* Asked before mkdir: NFS may deny a mkdir of a directory that exists with EACCES or EROFS. */
static bool is_directory(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Creates the directory named by the first n bytes of path, unless it exists. */
static int make_dir(char *path, size_t n, struct dt_error *err)
{
    char after = path[n];
    int rc = 0;

    path[n] = '\0';
    if (n > 0 && !is_directory(path) && mkdir(path, 0777) < 0 && errno != EEXIST)
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

/* Opens without blocking: a FIFO of that name would wait for its reader. Appends, because the user
 * may empty the file while the job runs. Follows no link: another user may have put it there, so
 * that this user's file is emptied. */
static int open_file(const char *name, struct dt_error *err)
{
    const int how = O_WRONLY | O_APPEND | O_CREAT | O_TRUNC | O_NOFOLLOW;
    int fd = open(name, how | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
    struct stat st;

    if (fd < 0 && errno == ELOOP)
        return dt_error_set(err, "--output-dir: %s: " NOT_REGULAR, name);
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
    f->v = dt_xcalloc(count, sizeof *f->v);
    for (; f->n < count; f->n++) {
        char *name = name_of(f, f->n);

        f->v[f->n] = (struct outfile){ .files = f, .fd = make_file(name, err) };
        free(name);
        if (f->v[f->n].fd < 0) {
            dt_outfiles_close(f, &ignored);
            free(ignored);
            return NULL;
        }
    }
    return f;
}

/* Checks that the file, and the directories that are missing above it, could be created. */
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

    if (lstat(name, &st) < 0)
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

static void on_wrote(void *arg, size_t n, int error)
{
    struct outfile *file = arg;
    struct dt_outfiles *f = file->files;
    size_t i = (size_t)(file - f->v);
    char *name = error ? name_of(f, i) : NULL;

    f->pending -= n;
    f->moved_ns = dt_now_ns();
    file->failed |= error != 0;
    if (error)
        f->events.failed(f->arg, name, error);
    free(name);
    f->events.wrote(f->arg, (uint32_t)(i % f->config.nprocs),
                    i < f->config.nprocs ? STDOUT_FILENO : STDERR_FILENO, n);
    if (f->pending == 0)
        f->events.drained(f->arg);
}

void dt_outfiles_start(struct dt_outfiles *f, uv_loop_t *loop,
                       const struct dt_outfiles_events *events, void *arg)
{
    f->events = *events;
    f->arg = arg;
    f->writer = dt_filewriter_open(loop);
    for (size_t i = 0; i < f->n; i++)
        f->v[i].queue = dt_filewriter_file(f->writer, f->v[i].fd, on_wrote, &f->v[i]);
}

void dt_outfiles_write(struct dt_outfiles *f, uint32_t number, int fd, const void *data, size_t n)
{
    size_t i = (size_t)(fd == STDERR_FILENO) * f->config.nprocs + number;

    if (number >= f->config.nprocs || i >= f->n)
        return;
    if (f->pending == 0)
        f->moved_ns = dt_now_ns();
    f->pending += n;
    dt_filewriter_add(f->v[i].queue, data, n);
}

bool dt_outfiles_await(const struct dt_outfiles *f, uint64_t ms)
{
    return f && f->pending > 0 && dt_now_ns() - f->moved_ns >= ms * 1000000;
}

void dt_outfiles_stop(struct dt_outfiles *f)
{
    if (f)
        dt_filewriter_close(f->writer);
}

/* Leaves descriptors open on which a write may be in progress: closing them could block on the file
 * system as well. They close when the process ends. */
int dt_outfiles_close(struct dt_outfiles *f, char **name)
{
    int error = 0;

    for (size_t i = 0; f && f->pending == 0 && i < f->n; i++) {
        if (close(f->v[i].fd) == 0 || f->v[i].failed || error)
            continue;
        error = errno;
        *name = name_of(f, i);
    }
    if (f) {
        free(f->v);
        free(f);
    }
    errno = error;
    return error ? -1 : 0;
}
