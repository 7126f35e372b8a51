#include "launcher/agent/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "launcher/agent/owngroup.h"
#include "launcher/base/slurp.h"

enum { FILE_MAX = 256 * 1024, REMOVE_TRIES = 100, REMOVE_MS = 5 };

/* With a dot, so that no group of systemd's is taken for ours. */
static const char prefix[] = ".dtrun-";

/* Of a line "36 35 0:30 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup rw": where all of the tree is
 * mounted. */
static bool parse_mount(const char *line, char *at)
{
    char root[PATH_MAX];
    const char *type = strstr(line, " - cgroup2 ");

    return type && sscanf(line, "%*s %*s %*s %4095s %4095s", root, at) == 2 &&
           strcmp(root, "/") == 0;
}

static bool find_mount(char *at)
{
    struct dt_strbuf text = { 0 };
    char *line = NULL, *rest = NULL;

    if (dt_slurp(&text, "/proc/self/mountinfo", FILE_MAX, NULL) == 0 && text.len)
        line = strtok_r(text.data, "\n", &rest);
    while (line && !parse_mount(line, at))
        line = strtok_r(NULL, "\n", &rest);
    dt_strbuf_free(&text);
    return line != NULL;
}

/* The directory of the group that this process is in; *top: it is the whole tree's. */
static bool find_own(char *path, bool *top)
{
    char *group = dt_owngroup("", "");
    char at[PATH_MAX];
    bool found = false;

    *top = group && strcmp(group, "/") == 0;
    /* One that begins with ".." lies outside of the namespace. */
    if (group && strncmp(group, "/..", 3) != 0 && find_mount(at))
        found = snprintf(path, PATH_MAX, "%s%s", at, *top ? "" : group) < PATH_MAX;
    free(group);
    return found;
}

/* With a controller of its own the group would compete as one with the processes beside it. */
static bool is_plain(int dir)
{
    int fd = openat(dir, "cgroup.controllers", O_RDONLY | O_CLOEXEC);
    char byte;
    bool plain = fd >= 0 && read(fd, &byte, 1) == 0;

    if (fd >= 0)
        close(fd);
    return plain && faccessat(dir, "cgroup.kill", W_OK, 0) == 0; /* since Linux 5.14 */
}

int dt_cgroup_make(char *path, const char *job_id)
{
    char own[PATH_MAX];
    int dir = -1;
    bool top;

    path[0] = '\0';
    if (!find_own(own, &top) ||
        snprintf(path, DT_CGROUP_PATH, "%s/%s%s.XXXXXX", own, prefix, job_id) >= DT_CGROUP_PATH ||
        !mkdtemp(path)) {
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

pid_t dt_cgroup_fork(int group)
{
    struct clone_args args = {
        .flags = CLONE_INTO_CGROUP,
        .exit_signal = SIGCHLD,
        .cgroup = (uint64_t)group,
    };
    pid_t pid = group < 0 ? -1 : (pid_t)syscall(SYS_clone3, &args, sizeof args);

    return pid < 0 ? fork() : pid;
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

/* Whoever made it holds a lock for as long as it lives. */
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

/* Also beside our own group: a login by SSH may have one for each session. */
void dt_cgroup_end_orphans(void)
{
    char own[PATH_MAX], other[2 * PATH_MAX];
    const struct dirent *entry;
    char *last;
    bool top;
    DIR *dir;

    if (!find_own(own, &top))
        return;
    end_orphans_in(own);
    if (top)
        return;
    last = strrchr(own, '/');
    *last = '\0';
    dir = opendir(own);
    while (dir && (entry = readdir(dir))) {
        snprintf(other, sizeof other, "%s/%s", own, entry->d_name);
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, last + 1) != 0)
            end_orphans_in(other);
    }
    if (dir)
        closedir(dir);
}
