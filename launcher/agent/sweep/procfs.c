#include "launcher/agent/sweep/procfs.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool dt_procfs_is_ours(void)
{
    static bool ours; /* once true, it stays so: asked for every process of the host */
    char self[16] = "";

    if (!ours && readlink("/proc/self", self, sizeof self - 1) > 0)
        ours = atoi(self) == (int)getpid();
    return ours;
}

pid_t dt_procfs_next(DIR *dir)
{
    const struct dirent *entry;

    do
        entry = readdir(dir);
    while (entry && !isdigit((unsigned char)entry->d_name[0]));
    return entry ? (pid_t)atoi(entry->d_name) : 0;
}

/* A thread that has ended has none. Kernels without CONFIG_PROC_CHILDREN lack the file. */
static bool has_thread_children(int tasks, pid_t thread)
{
    char name[64], first;
    int fd;
    bool has;

    snprintf(name, sizeof name, "%d/children", (int)thread);
    fd = openat(tasks, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        snprintf(name, sizeof name, "%d", (int)thread);
        return faccessat(tasks, name, F_OK, 0) == 0;
    }
    has = read(fd, &first, 1) == 1;
    close(fd);
    return has;
}

bool dt_procfs_has_children(pid_t pid)
{
    char path[64];
    DIR *tasks;
    bool has = false;
    pid_t thread;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    tasks = opendir(path);
    while (tasks && !has && (thread = dt_procfs_next(tasks)))
        has = has_thread_children(dirfd(tasks), thread);
    if (tasks)
        closedir(tasks);
    return has;
}
