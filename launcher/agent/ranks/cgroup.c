#include "launcher/agent/ranks/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "launcher/base/granted/cgroupdir.h"
#include "launcher/base/mem.h"

enum { TRIES = 10 };

/* The dot distinguishes the name from systemd's groups. */
static const char prefix[] = ".dtrun-";

/* Returns the directory of this process's group, or NULL. *top: it is the top of the whole tree. */
static char *find_own(bool *top)
{
    struct dt_cgroupdir d;
    char *path = NULL;

    *top = false;
    if (dt_cgroupdir_find(&d, "", "")) {
        path = dt_xasprintf("%s%s", d.mount, d.path);
        *top = !*d.path;
    }
    dt_cgroupdir_free(&d);
    return path;
}

/* A group with its own controllers would compete as one unit with the processes beside it. */
static bool is_plain(int dir)
{
    int fd = openat(dir, "cgroup.controllers", O_RDONLY | O_CLOEXEC);
    char byte;
    bool plain = fd >= 0 && read(fd, &byte, 1) == 0;

    if (fd >= 0)
        close(fd);
    return plain && faccessat(dir, "cgroup.kill", W_OK, 0) == 0; /* exists since Linux 5.14 */
}

/* Opens and locks the new group. If that fails, removes it. *taken: until it was locked, another
 * agent took it for an orphan. */
static int open_group(const char *path, bool *taken)
{
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    *taken = dir >= 0 && flock(dir, LOCK_SH | LOCK_NB) < 0;
    if (dir >= 0 && !*taken && is_plain(dir))
        return dir;
    if (dir >= 0)
        close(dir);
    *taken |= rmdir(path) < 0 && errno == ENOENT;
    return -1;
}

int dt_cgroup_make(char *path, const char *job_id)
{
    int dir = -1;
    bool top, taken = true;
    char *own = find_own(&top);

    for (int i = 0; own && dir < 0 && taken && i < TRIES; i++) {
        int n = snprintf(path, DT_CGROUP_PATH, "%s/%s%s.XXXXXX", own, prefix, job_id);

        taken = false;
        if (n < DT_CGROUP_PATH && mkdtemp(path))
            dir = open_group(path, &taken);
    }
    free(own);
    if (dir < 0)
        path[0] = '\0';
    return dir;
}

void dt_cgroup_kill(const char *path)
{
    char file[PATH_MAX];
    int fd;

    if (!path[0] || snprintf(file, sizeof file, "%s/cgroup.kill", path) >= (int)sizeof file)
        return;
    fd = open(file, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    while (write(fd, "1", 1) < 0 && errno == EINTR)
        continue;
    close(fd);
}

static bool has_removed(const char *path)
{
    return rmdir(path) == 0 || errno != EBUSY;
}

static bool remove_with_inner(const char *path)
{
    DIR *dir = has_removed(path) ? NULL : opendir(path);
    const struct dirent *entry;

    if (!dir)
        return has_removed(path);
    while ((entry = readdir(dir))) {
        char *inner = dt_xasprintf("%s/%s", path, entry->d_name);

        if (entry->d_type == DT_DIR && strcmp(entry->d_name, ".") != 0 &&
            strcmp(entry->d_name, "..") != 0)
            remove_with_inner(inner);
        free(inner);
    }
    closedir(dir);
    return has_removed(path);
}

bool dt_cgroup_remove(char *path)
{
    if (path[0] && !remove_with_inner(path))
        return false;
    path[0] = '\0';
    return true;
}

/* The agent that created the group holds a lock on it as long as it lives. Returns whether an
 * orphaned group is left. */
static bool end_if_orphaned(const char *parent, const char *name)
{
    char path[PATH_MAX];
    bool left = false;
    int dir;

    if (strncmp(name, prefix, sizeof prefix - 1) != 0 ||
        snprintf(path, sizeof path, "%s/%s", parent, name) >= (int)sizeof path)
        return false;
    dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir >= 0 && flock(dir, LOCK_EX | LOCK_NB) == 0) {
        dt_cgroup_kill(path);
        left = !dt_cgroup_remove(path);
    }
    if (dir >= 0)
        close(dir);
    return left;
}

static size_t end_orphans_in(const char *parent)
{
    DIR *dir = opendir(parent);
    const struct dirent *entry;
    size_t left = 0;

    while (dir && (entry = readdir(dir)))
        left += end_if_orphaned(parent, entry->d_name);
    if (dir)
        closedir(dir);
    return left;
}

/* Modifies own. */
static size_t end_orphans_beside(char *own)
{
    char *last = strrchr(own, '/');
    const struct dirent *entry;
    size_t left = 0;
    DIR *dir;

    *last = '\0';
    dir = opendir(own);
    while (dir && (entry = readdir(dir))) {
        char *other = dt_xasprintf("%s/%s", own, entry->d_name);

        if (entry->d_name[0] != '.' && strcmp(entry->d_name, last + 1) != 0)
            left += end_orphans_in(other);
        free(other);
    }
    if (dir)
        closedir(dir);
    return left;
}

/* Looks beside the agent's own group as well: SSH logins may have one group for each session. */
size_t dt_cgroup_end_orphans(void)
{
    size_t left = 0;
    bool top;
    char *own = find_own(&top);

    if (own)
        left = end_orphans_in(own);
    if (own && !top)
        left += end_orphans_beside(own);
    free(own);
    return left;
}
