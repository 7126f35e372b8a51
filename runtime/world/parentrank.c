#include "runtime/world/parentrank.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_ROOM = 64, ANCESTORS_MAX = 64 };

static bool is_socket(pid_t pid, int fd)
{
    char path[PATH_ROOM], target[PATH_ROOM] = "";

    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, fd);
    return readlink(path, target, sizeof target - 1) > 0 &&
           strncmp(target, "socket:", strlen("socket:")) == 0;
}

static bool closes_on_exec(pid_t pid, int fd)
{
    char path[PATH_ROOM], line[PATH_ROOM];
    unsigned flags = 0;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", (int)pid, fd);
    f = fopen(path, "re");
    if (!f)
        return false;
    while (fgets(line, sizeof line, f) && sscanf(line, "flags: %o", &flags) != 1)
        continue;
    fclose(f);
    return flags & O_CLOEXEC;
}

/* 0: there is none, or it is dtrun-agent itself, whose descriptors do not matter here. */
static pid_t parent_of(pid_t pid)
{
    char path[PATH_ROOM], stat[512] = "", *end;
    int parent = 0;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    f = fopen(path, "re");
    if (!f)
        return 0;
    if (!fgets(stat, sizeof stat, f))
        stat[0] = '\0';
    fclose(f);
    end = strrchr(stat, ')'); /* the name before it may contain any character */
    if (!end || strstr(stat, "(dtrun-agent") || sscanf(end, ") %*c %d", &parent) != 1)
        return 0;
    return parent;
}

pid_t dt_parentrank_find(int fd)
{
    pid_t pid = getppid();

    for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
        pid_t parent = parent_of(pid);

        if (parent && is_socket(pid, fd) && closes_on_exec(pid, fd))
            return pid;
        pid = parent;
    }
    return 0;
}
