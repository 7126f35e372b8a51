/* What is deep is brought up: so no path grows too long, and two directories are open at a time. */
#include "launcher/agent/removetree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct tree {
    int fd; /* of the top */
    unsigned long names;
};

static DIR *open_dir(int at, const char *name)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

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

    do
        snprintf(fresh, sizeof fresh, "deep-%lu", t->names++);
    while (faccessat(t->fd, fresh, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
    return renameat(from, name, t->fd, fresh) == 0;
}

/* Returns whether anything has become less, or less deep. */
static bool empty(struct tree *t, const char *name)
{
    DIR *dir = open_dir(t->fd, name);
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
    DIR *top = open_dir(AT_FDCWD, path);
    struct tree t = { .fd = top ? dirfd(top) : -1 };

    while (top && pass(&t, top))
        continue;
    if (top)
        closedir(top);
    return rmdir(path) == 0 || errno == ENOENT;
}
