#include "launcher/agent/io/pipewriter.h"

#include <ctype.h>
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/agent/sweep/procstat.h"

/* Returns the number that is the entry's name, or -1. */
static pid_t number_of(const struct dirent *entry)
{
    return isdigit((unsigned char)entry->d_name[0]) ? (pid_t)atoi(entry->d_name) : -1;
}

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
    const struct dirent *entry;
    bool awake = false;
    DIR *proc = opendir("/proc");

    while (proc && !awake && (entry = readdir(proc))) {
        pid_t pid = number_of(entry);

        awake = pid >= 0 && pid != reader && pid != getpid() && is_awake_writer(pid, pipe);
    }
    if (proc)
        closedir(proc);
    return awake;
}
