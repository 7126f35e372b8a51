#include "launcher/agent/ranks/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "launcher/agent/facts/cgroupdir.h"
#include "launcher/base/mem.h"

enum { REMOVE_TRIES = 100, REMOVE_MS = 5 };

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

int dt_cgroup_make(char *path, const char *job_id)
{
    int dir = -1, n = DT_CGROUP_PATH;
    bool top;
    char *own = find_own(&top);

    path[0] = '\0';
    if (own)
        n = snprintf(path, DT_CGROUP_PATH, "%s/%s%s.XXXXXX", own, prefix, job_id);
    free(own);
    if (n >= DT_CGROUP_PATH || !mkdtemp(path)) {
        path[0] = '\0';
        return -1;
    }
    dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir >= 0 && is_plain(dir) && flock(dir, LOCK_SH | LOCK_NB) == 0)
        return dir;
    if (dir >= 0)
        close(dir);
    rmdir(path);
    path[0] = '\0';
    return -1;
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

void dt_cgroup_remove(char *path)
{
    const struct timespec pause = { .tv_nsec = REMOVE_MS * 1000000L };
    int tries = path[0] ? REMOVE_TRIES : 0;

    while (tries-- > 0) {
        if (rmdir(path) == 0 || errno != EBUSY) {
            path[0] = '\0';
            return;
        }
        nanosleep(&pause, NULL);
    }
}

/* The agent that created the group holds a lock on it as long as it lives. */
static void end_if_orphaned(const char *parent, const char *name)
{
    char path[PATH_MAX];
    int dir;

    if (strncmp(name, prefix, sizeof prefix - 1) != 0 ||
        snprintf(path, sizeof path, "%s/%s", parent, name) >= (int)sizeof path)
        return;
    dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir >= 0 && flock(dir, LOCK_EX | LOCK_NB) == 0) {
        dt_cgroup_kill(path);
        dt_cgroup_remove(path);
    }
    if (dir >= 0)
        close(dir);
}

static void end_orphans_in(const char *parent)
{
    DIR *dir = opendir(parent);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir)))
        end_if_orphaned(parent, entry->d_name);
    if (dir)
        closedir(dir);
}

/* Modifies own. */
static void end_orphans_beside(char *own)
{
    char *last = strrchr(own, '/');
    const struct dirent *entry;
    DIR *dir;

    *last = '\0';
    dir = opendir(own);
    while (dir && (entry = readdir(dir))) {
        char *other = dt_xasprintf("%s/%s", own, entry->d_name);

        if (entry->d_name[0] != '.' && strcmp(entry->d_name, last + 1) != 0)
            end_orphans_in(other);
        free(other);
    }
    if (dir)
        closedir(dir);
}

/* Looks beside the agent's own group as well: SSH logins may have one group for each session. */
void dt_cgroup_end_orphans(void)
{
    bool top;
    char *own = find_own(&top);

    if (own)
        end_orphans_in(own);
    if (own && !top)
        end_orphans_beside(own);
    free(own);
}
