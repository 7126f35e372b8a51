/* What is deep is brought up: so no path grows too long, and two directories are open at a time. */
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
    int fd; /* of the top */
    unsigned long names;
};

/* As /proc counts mounts, or -1: statx(2) tells of what is bound there since Linux 5.8 only. */
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

/* Of another file system, or bound there: it is not the job's. A server that is gone is not waited
 * for. */
static bool is_mounted(int top, int fd)
{
    struct statx s, t;

    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &s) < 0 ||
        statx(top, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &t) < 0)
        return true;
    return s.stx_dev_major != t.stx_dev_major || s.stx_dev_minor != t.stx_dev_minor ||
           mount_of(fd) != mount_of(top);
}

/* Only through /proc can be changed what may not be opened and is no link. */
static void permit(int handle)
{
    char path[32];

    snprintf(path, sizeof path, "/proc/self/fd/%d", handle);
    chmod(path, 0700);
}

/* A descriptor of a directory that, if it is ours, may be changed, or -1. top: -1 for itself. */
static int permitted(int top, int at, const char *name)
{
    int handle = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (handle < 0)
        return -1;
    if (top >= 0 && is_mounted(top, handle)) {
        close(handle);
        return -1;
    }
    permit(handle);
    return handle;
}

static DIR *open_dir(int top, int at, const char *name)
{
    int handle = permitted(top, at, name);
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

static bool bring_up(struct tree *t, int from, const char *name)
{
    char fresh[32];
    int handle = permitted(t->fd, from, name); /* its ".." is changed */

    if (handle >= 0)
        close(handle);
    do
        snprintf(fresh, sizeof fresh, "deep-%lu", t->names++);
    while (faccessat(t->fd, fresh, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
    return renameat(from, name, t->fd, fresh) == 0;
}

/* Returns whether anything has become less, or less deep. */
static bool empty(struct tree *t, const char *name)
{
    DIR *dir = open_dir(t->fd, t->fd, name);
    const char *inner;
    bool some = false;

    while (dir && (inner = next_name(dir)))
        some |= remove_one(dirfd(dir), inner) || bring_up(t, dirfd(dir), inner);
    if (dir)
        closedir(dir);
    return some;
}

static bool pass(struct tree *t, DIR *top)
{
    const char *name;
    bool some = false;

    rewinddir(top);
    while ((name = next_name(top))) {
        if (remove_one(t->fd, name)) {
            some = true;
            continue;
        }
        some |= empty(t, name);
        some |= remove_one(t->fd, name);
    }
    return some;
}

bool dt_removetree(const char *path)
{
    DIR *top = open_dir(-1, AT_FDCWD, path);
    struct tree t = { .fd = top ? dirfd(top) : -1 };

    while (top && pass(&t, top))
        continue;
    if (top)
        closedir(top);
    return rmdir(path) == 0 || errno == ENOENT;
}
