#include "launcher/agent/io/pipewriter.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/agent/sweep/procfs.h"
#include "launcher/agent/sweep/procstat.h"

/* Reads the link and does not follow it: its target may be on a file system that hangs. */
static bool holds(pid_t pid, const char *pipe)
{
    const struct dirent *entry;
    bool found = false;
    char path[64];
    DIR *dir;

    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    dir = opendir(path);
    while (dir && !found && (entry = readdir(dir))) {
        char link[DT_PIPE_NAME] = "";

        found = readlinkat(dirfd(dir), entry->d_name, link, sizeof link - 1) > 0 &&
                strcmp(link, pipe) == 0;
    }
    if (dir)
        closedir(dir);
    return found;
}

static bool is_awake(const struct dt_procstat *thread)
{
    return !thread->asleep;
}

/* Most processes sleep, and some have thousands of descriptors. */
static bool is_awake_writer(pid_t pid, const char *pipe)
{
    struct dt_procstat p;

    if (!dt_procstat_read(&p, pid) || (p.asleep && p.threads <= 1))
        return false;
    return dt_procstat_any_thread(pid, is_awake) && holds(pid, pipe);
}

void dt_pipewriter_name(char name[DT_PIPE_NAME], int fd)
{
    struct stat st = { 0 };

    fstat(fd, &st);
    if (ptsname_r(fd, name, DT_PIPE_NAME) != 0)
        snprintf(name, DT_PIPE_NAME, "pipe:[%ju]", (uintmax_t)st.st_ino);
}

bool dt_pipewriter_is_awake(const char *pipe, pid_t reader)
{
    bool awake = false;
    DIR *proc = opendir("/proc");
    pid_t pid;

    while (proc && !awake && (pid = dt_procfs_next(proc)))
        awake = pid != reader && pid != getpid() && is_awake_writer(pid, pipe);
    if (proc)
        closedir(proc);
    return awake;
}
