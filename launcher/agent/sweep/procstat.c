#include "launcher/agent/sweep/procstat.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/agent/sweep/procfs.h"

/* From the kernel's linux/sched.h. */
enum {
    PF_EXITING = 0x4,
    PF_DUMPCORE = 0x200,
    PF_SIGNALED = 0x400,
};

/* Parses "PID (NAME) STATE PARENT GROUP SESSION TTY TTYGROUP FLAGS ...", where NAME may hold any
 * bytes. The number of threads is the eleventh field after FLAGS, the start time the thirteenth,
 * and the exit code comes last. */
static bool read_file(struct dt_procstat *p, const char *path)
{
    char text[1024];
    const char *after;
    unsigned flags;
    bool main_ended;
    ssize_t n;
    int fd;

    fd = dt_procfs_is_ours() ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return false;
    n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    after = strrchr(text, ')');
    if (!after ||
        sscanf(after + 1,
               " %c %d %d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %" SCNu64,
               &p->state, &p->parent, &p->group, &flags, &p->threads, &p->started) != 6)
        return false;
    /* A main thread that has called pthread_exit is a zombie with exit code 0 while the other
     * threads continue. */
    main_ended = p->state == 'Z' || p->state == 'X';
    p->living = !main_ended || p->threads > 1;
    p->stopped = p->state == 'T';
    p->asleep = main_ended || p->state == 'S' || p->state == 'I';
    p->dying = !p->living || (main_ended ? atoi(strrchr(after, ' ')) != 0
                                         : flags & (PF_EXITING | PF_DUMPCORE | PF_SIGNALED));
    return true;
}

bool dt_procstat_read(struct dt_procstat *p, pid_t pid)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    return read_file(p, path);
}

static bool read_thread(struct dt_procstat *p, pid_t pid, pid_t tid)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    return read_file(p, path);
}

bool dt_procstat_any_thread(pid_t pid, dt_procstat_thread_f is)
{
    bool any = false;
    char path[64];
    DIR *tasks;
    pid_t tid;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    tasks = opendir(path);
    while (tasks && !any && (tid = dt_procfs_next(tasks))) {
        struct dt_procstat thread;

        any = read_thread(&thread, pid, tid) && is(&thread);
    }
    if (tasks)
        closedir(tasks);
    return any;
}
