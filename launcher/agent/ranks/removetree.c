/* Moves deep directories up to the top before it removes them. So no path grows too long, and only
 * two directories are open at a time. */
#include "launcher/agent/ranks/removetree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/base/slurp.h"

enum { INFO_MAX = 4096 };

struct tree {
    int fd;              /* of the top directory */
    unsigned long moved; /* number of directories that were moved up */
};

/* Returns the mount id as in /proc, or -1. statx(2) reports bind mounts only since Linux 5.8. */
static long mount_of(int fd)
{
    static const char key[] = "mnt_id:";
    struct dt_strbuf text = { 0 };
    const char *at = NULL;
    char path[40];
    long id;

    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    if (dt_slurp(&text, path, INFO_MAX, NULL) == 0)
        at = strstr(dt_strbuf_text(&text), key);
    id = at ? strtol(at + strlen(key), NULL, 10) : -1;
    dt_strbuf_free(&text);
    return id;
}

/* Another file system, or a bind mount, does not belong to the job. Does not wait for a server that
 * is gone. */
static bool is_mounted(int top, int fd)
{
    struct statx s, t;

    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &s) < 0 ||
        statx(top, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &t) < 0)
        return true;
    return s.stx_dev_major != t.stx_dev_major || s.stx_dev_minor != t.stx_dev_minor ||
           mount_of(fd) != mount_of(top);
}

/* A file that may not be opened and is not a link can be changed only through /proc. */
static void make_writable(int handle)
{
    char path[32];

    snprintf(path, sizeof path, "/proc/self/fd/%d", handle);
    chmod(path, 0700);
}

/* Returns a descriptor of a directory, or -1. If the directory is this user's, makes it writable
 * first. top is -1 for the top directory itself. */
static int open_writable(int top, int at, const char *name)
{
    int handle = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (handle < 0)
        return -1;
    if (top >= 0 && is_mounted(top, handle)) {
        close(handle);
        return -1;
    }
    make_writable(handle);
    return handle;
}

static DIR *open_dir(int top, int at, const char *name)
{
    int handle = open_writable(top, at, name);
    int fd = handle < 0 ? -1 : openat(handle, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (handle >= 0)
        close(handle);
    if (!dir && fd >= 0)
        close(fd);
    return dir;
}

static const char *next_name(DIR *dir)
{
    const struct dirent *e;

    do
        e = readdir(dir);
    while (e && (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0));
    return e ? e->d_name : NULL;
}

static bool remove_one(int at, const char *name)
{
    return unlinkat(at, name, 0) == 0 || unlinkat(at, name, AT_REMOVEDIR) == 0;
}

static bool move_up(struct tree *t, int from, const char *name)
{
    char fresh[32];
    int handle = open_writable(t->fd, from, name); /* moving it changes its ".." */

    if (handle >= 0)
        close(handle);
    do
        snprintf(fresh, sizeof fresh, "deep-%lu", t->moved++);
    while (faccessat(t->fd, fresh, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
    return renameat(from, name, t->fd, fresh) == 0;
}

/* Returns whether it removed something or moved something up. */
static bool empty_dir(struct tree *t, const char *name)
{
    DIR *dir = open_dir(t->fd, t->fd, name);
    const char *inner;
    bool progress = false;

    while (dir && (inner = next_name(dir)))
        progress |= remove_one(dirfd(dir), inner) || move_up(t, dirfd(dir), inner);
    if (dir)
        closedir(dir);
    return progress;
}

/* Returns whether it made progress, so that another pass may remove more. */
static bool remove_what_can_be(struct tree *t, DIR *top)
{
    const char *name;
    bool progress = false;

    rewinddir(top);
    while ((name = next_name(top))) {
        if (remove_one(t->fd, name)) {
            progress = true;
            continue;
        }
        progress |= empty_dir(t, name);
        progress |= remove_one(t->fd, name);
    }
    return progress;
}

bool dt_removetree(const char *path)
{
    DIR *top = open_dir(-1, AT_FDCWD, path);
    struct tree t = { .fd = top ? dirfd(top) : -1 };

    while (top && remove_what_can_be(&t, top))
        continue;
    if (top)
        closedir(top);
    return rmdir(path) == 0 || errno == ENOENT;
}

void dt_removetree_named(char *path)
{
    if (path[0] && dt_removetree(path))
        path[0] = '\0';
}
