#include "runtime/base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/wire/highfd.h"
#include "runtime/wire/writeall.h"

enum { CHUNK = 1 << 20 };

static dt_result_t fail_at(const struct dt_dir *d, const char *name, const char *what)
{
    return dt_fail_errno(DT_ERR_IO, errno, "%s/%s: %s", d->path, name, what);
}

static dt_result_t fail_too_long(const char *path)
{
    dt_fail(DT_ERR_IO, "%.200s...: the name is too long", path);
    dt_error_details()->error = ENAMETOOLONG;
    return DT_ERR_IO;
}

static int open_dir(const char *path)
{
    return dt_fd_high(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

/* A new directory survives a power failure only if its parent is synced. A parent that may not be
 * read cannot be synced, which is no failure. */
static dt_result_t sync_parent(char *part)
{
    char *slash = strrchr(part, '/');
    struct dt_dir parent;
    dt_result_t result;

    if (slash)
        slash[slash == part] = '\0';
    snprintf(parent.path, sizeof parent.path, "%s", slash ? part : ".");
    parent.fd = open_dir(parent.path);
    if (parent.fd < 0)
        return DT_OK;
    result = dt_dir_sync(&parent);
    dt_dir_close(&parent);
    return result;
}

/* Asked before mkdir: NFS may deny a mkdir of a directory that exists with EACCES or EROFS. */
static bool is_directory(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

dt_result_t dt_dir_make(const char *path)
{
    char part[PATH_MAX];
    dt_result_t result = DT_OK;
    size_t len = strlen(path);

    if (len >= sizeof part)
        return fail_too_long(path);
    for (size_t i = 1; i <= len && result == DT_OK; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (is_directory(part))
            continue;
        if (mkdir(part, 0777) == 0)
            result = sync_parent(part);
        else if (errno != EEXIST)
            result = dt_fail_errno(DT_ERR_IO, errno, "%s: cannot be created", part);
    }
    return result;
}

dt_result_t dt_dir_open(struct dt_dir *d, const char *path)
{
    if (snprintf(d->path, sizeof d->path, "%s", path) >= PATH_MAX)
        return fail_too_long(path);
    d->fd = open_dir(path);
    if (d->fd < 0)
        return dt_fail_errno(DT_ERR_IO, errno, "%s", path);
    return DT_OK;
}

dt_result_t dt_dir_open_in(struct dt_dir *d, const struct dt_dir *parent, const char *name)
{
    if (snprintf(d->path, sizeof d->path, "%s/%s", parent->path, name) >= PATH_MAX)
        return fail_too_long(parent->path);
    d->fd = dt_fd_high(openat(parent->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    return d->fd < 0 ? fail_at(parent, name, "open") : DT_OK;
}

dt_result_t dt_dir_sync(const struct dt_dir *d)
{
    /* File systems that cannot sync a directory return EINVAL; there is nothing to do. */
    if (fsync(d->fd) != 0 && errno != EINVAL)
        return dt_fail_errno(DT_ERR_IO, errno, "%s: fsync", d->path);
    return DT_OK;
}

void dt_dir_close(struct dt_dir *d)
{
    if (d->fd >= 0)
        close(d->fd);
    d->fd = -1;
}

dt_result_t dt_dir_each(const struct dt_dir *d, dt_result_t (*visit)(void *arg, const char *name),
                        void *arg)
{
    int fd = openat(d->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    dt_result_t result = DT_OK;
    struct dirent *e;

    if (!dir) {
        result = fail_at(d, ".", "open");
        if (fd >= 0)
            close(fd);
        return result;
    }
    while (result == DT_OK && (errno = 0, e = readdir(dir)))
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            result = visit(arg, e->d_name);
    if (result == DT_OK && errno)
        result = fail_at(d, ".", "read");
    closedir(dir);
    return result;
}

dt_result_t dt_dir_rename(const struct dt_dir *d, const char *from, const char *to)
{
    if (renameat(d->fd, from, d->fd, to) == 0)
        return DT_OK;
    /* overlayfs returns it for directories of a lower layer */
    if (errno == EXDEV)
        return fail_at(d, from,
                       "rename (is it in a layer of the container's image? then use a copy, or "
                       "another directory)");
    return fail_at(d, from, "rename");
}

static dt_result_t remove_file(void *arg, const char *name)
{
    const struct dt_dir *d = arg;

    if (unlinkat(d->fd, name, 0) != 0 && errno != ENOENT)
        return fail_at(d, name, "remove");
    return DT_OK;
}

dt_result_t dt_dir_remove(const struct dt_dir *d, const char *name, const char *first)
{
    struct dt_dir sub = { .fd = -1 };
    dt_result_t result;

    if (unlinkat(d->fd, name, 0) == 0 || errno == ENOENT)
        return DT_OK;
    if (errno != EISDIR && errno != EPERM)
        return fail_at(d, name, "remove");
    result = dt_dir_open_in(&sub, d, name);
    if (result != DT_OK)
        return dt_error_details()->error == ENOENT ? DT_OK : result;
    result = remove_file(&sub, first);
    if (result == DT_OK)
        result = dt_dir_each(&sub, remove_file, &sub);
    dt_dir_close(&sub);
    if (result == DT_OK && unlinkat(d->fd, name, AT_REMOVEDIR) != 0 && errno != ENOENT)
        result = fail_at(d, name, "remove");
    return result;
}

static dt_result_t begin_file(struct dt_file *f, const struct dt_dir *d, const char *name, int fd)
{
    *f = (struct dt_file){ .fd = dt_fd_high(fd), .dir = d, .name = name };
    if (f->fd < 0)
        return fail_at(d, name, "open");
    f->hasher = dt_hasher_create();
    if (f->hasher)
        return DT_OK;
    dt_file_close(f);
    return dt_fail(DT_ERR_NOMEM, "out of memory for a checksum");
}

dt_result_t dt_file_create(struct dt_file *f, const struct dt_dir *d, const char *name)
{
    return begin_file(f, d, name,
                      openat(d->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
}

dt_result_t dt_file_open(struct dt_file *f, const struct dt_dir *d, const char *name,
                         uint64_t *bytes)
{
    /* Without O_NONBLOCK another user's FIFO of that name would hold this process up. */
    dt_result_t result =
        begin_file(f, d, name, openat(d->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat st;

    if (result != DT_OK)
        return result;
    if (fstat(f->fd, &st) != 0)
        result = fail_at(d, name, "stat");
    else if (!S_ISREG(st.st_mode))
        result = dt_fail(DT_ERR_IO, "%s/%s: is not a regular file", d->path, name);
    if (result == DT_OK)
        *bytes = (uint64_t)st.st_size;
    else
        dt_file_close(f);
    return result;
}

dt_result_t dt_file_write(struct dt_file *f, const void *data, size_t n)
{
    dt_hasher_add(f->hasher, data, n);
    return dt_write_all(f->fd, data, n) == 0 ? DT_OK : fail_at(f->dir, f->name, "write");
}

static dt_result_t read_exactly(struct dt_file *f, uint8_t *p, size_t n)
{
    for (size_t have = 0; have < n;) {
        ssize_t got = read(f->fd, p + have, n - have);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_at(f->dir, f->name, "read");
        if (got == 0)
            return dt_fail(DT_ERR_IO, "%s/%s: is cut short", f->dir->path, f->name);
        have += (size_t)got;
    }
    dt_hasher_add(f->hasher, p, n);
    return DT_OK;
}

dt_result_t dt_file_read(struct dt_file *f, void *data, uint64_t n)
{
    const size_t chunk = n < CHUNK ? n : CHUNK;
    dt_result_t result = DT_OK;
    uint8_t *discarded;

    if (data)
        return read_exactly(f, data, n);
    discarded = malloc(chunk ? chunk : 1);
    if (!discarded)
        return dt_fail(DT_ERR_NOMEM, "out of memory for reading a checkpoint");
    while (n > 0 && result == DT_OK) {
        size_t part = n < chunk ? n : chunk;

        result = read_exactly(f, discarded, part);
        n -= part;
    }
    free(discarded);
    return result;
}

dt_result_t dt_file_finish(struct dt_file *f)
{
    dt_result_t result = DT_OK;
    int fd = f->fd;

    if (fsync(fd) != 0)
        result = fail_at(f->dir, f->name, "fsync");
    f->fd = -1;
    /* After EINTR, Linux has closed the descriptor. */
    if (close(fd) != 0 && errno != EINTR && result == DT_OK)
        result = fail_at(f->dir, f->name, "close");
    dt_file_close(f);
    return result;
}

void dt_file_close(struct dt_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    dt_hasher_destroy(f->hasher);
    *f = (struct dt_file){ .fd = -1 };
}
