#include "launcher/agent/procstat.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { /* of the kernel's linux/sched.h */
       PF_EXITING = 0x4,
       PF_DUMPCORE = 0x200,
       PF_SIGNALED = 0x400,
};

/* "PID (NAME) STATE PARENT GROUP SESSION TTY TTYGROUP FLAGS ...", where NAME may hold anything. */
bool dt_procstat_read(struct dt_procstat *p, pid_t pid)
{
    char path[64];
    char text[512];
    const char *after;
    unsigned flags;
    char state;
    ssize_t n;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    after = strrchr(text, ')');
    if (!after || sscanf(after + 1, " %c %d %*d %*d %*d %*d %u", &state, &p->parent, &flags) != 3)
        return false;
    p->living = state != 'Z' && state != 'X';
    p->dying = (flags & (PF_EXITING | PF_DUMPCORE | PF_SIGNALED)) != 0;
    return true;
}
