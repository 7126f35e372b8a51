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

enum { PIPE_NAME_MAX = 64 };

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
        char link[PIPE_NAME_MAX] = "";

        found = readlinkat(dirfd(dir), entry->d_name, link, sizeof link - 1) > 0 &&
                strcmp(link, pipe) == 0;
    }
    if (dir)
        closedir(dir);
    return found;
}

static bool has_awake_thread(pid_t pid)
{
    const struct dirent *entry;
    struct dt_procstat thread;
    bool awake = false;
    char path[64];
    DIR *dir;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    dir = opendir(path);
    while (dir && !awake && (entry = readdir(dir)))
        awake = number_of(entry) >= 0 && dt_procstat_read_thread(&thread, pid, number_of(entry)) &&
                !thread.asleep;
    if (dir)
        closedir(dir);
    return awake;
}

static bool is_awake_writer(pid_t pid, const char *pipe)
{
    struct dt_procstat p;

    if (pid < 0 || pid == getpid() || !dt_procstat_read(&p, pid) || (p.asleep && p.threads <= 1))
        return false;
    return holds(pid, pipe) && has_awake_thread(pid);
}

bool dt_pipewriter_is_awake(int fd)
{
    const struct dirent *entry;
    char pipe[PIPE_NAME_MAX];
    bool awake = false;
    struct stat st;
    DIR *proc;

    if (fstat(fd, &st) < 0)
        return false;
    if (ptsname_r(fd, pipe, sizeof pipe) != 0)
        snprintf(pipe, sizeof pipe, "pipe:[%ju]", (uintmax_t)st.st_ino);
    proc = opendir("/proc");
    while (proc && !awake && (entry = readdir(proc)))
        awake = is_awake_writer(number_of(entry), pipe);
    if (proc)
        closedir(proc);
    return awake;
}
