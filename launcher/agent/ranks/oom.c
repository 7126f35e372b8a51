#include "launcher/agent/ranks/oom.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/base/granted/cgroupdir.h"
#include "launcher/base/slurp.h"

enum { FILE_MAX = 64 * 1024 };

static const char key[] = "oom_kill ";

/* Reads "oom_kill N" at the beginning of a line. Returns false if the file or the line is missing.
 */
static bool read_count(const char *path, uint64_t *count)
{
    struct dt_strbuf text = { 0 };
    const char *at = NULL;

    if (path[0] && dt_slurp(&text, path, FILE_MAX, NULL) == 0) {
        at = dt_strbuf_text(&text);
        while (at && strncmp(at, key, sizeof key - 1) != 0) {
            at = strchr(at, '\n');
            at = at ? at + 1 : NULL;
        }
    }
    if (at)
        *count = strtoull(at + sizeof key - 1, NULL, 10);
    dt_strbuf_free(&text);
    return at != NULL;
}

static bool find_count(struct dt_oom *oom)
{
    struct dt_cgroupdir d;
    bool found = dt_cgroupdir_find(&d, "", "memory");

    if (found)
        found = snprintf(oom->path, sizeof oom->path, "%s%s/%s", d.mount, d.path,
                         d.version == 1 ? "memory.oom_control" : "memory.events") <
                (int)sizeof oom->path;
    dt_cgroupdir_free(&d);
    return found && read_count(oom->path, &oom->seen);
}

/* The log has the process ids of the initial namespace, whose inode number is fixed
 * (PROC_PID_INIT_INO). */
static void open_log(struct dt_oom *oom)
{
    static const char first[] = "pid:[4026531836]";
    char ours[64] = "";

    if (readlink("/proc/self/ns/pid", ours, sizeof ours - 1) < 0 || strcmp(ours, first) != 0)
        return;
    oom->log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (oom->log >= 0)
        lseek(oom->log, 0, SEEK_END); /* reads only later records */
}

void dt_oom_init(struct dt_oom *oom)
{
    *oom = (struct dt_oom){ .log = -1 };
    if (!find_count(oom))
        oom->path[0] = '\0';
    open_log(oom);
}

/* Parses "... Out of memory: Killed process 815 (train) ...". */
static void read_log(struct dt_oom *oom)
{
    static const char says[] = "Killed process ";
    char record[8192];
    ssize_t n;

    /* EPIPE: the kernel overwrote records before they were read; the next read continues after
     * them. */
    while ((n = read(oom->log, record, sizeof record - 1)) > 0 || (n < 0 && errno == EPIPE)) {
        const char *at;

        record[n > 0 ? n : 0] = '\0';
        at = strstr(record, says);
        if (at)
            oom->pids[oom->npids++ % DT_OOM_PIDS] = (pid_t)atoi(at + sizeof says - 1);
    }
}

/* Ids of processes are used again. */
void dt_oom_forget(struct dt_oom *oom)
{
    read_count(oom->path, &oom->seen);
    if (oom->log >= 0)
        read_log(oom);
    oom->npids = 0;
}

bool dt_oom_killed_any(const struct dt_oom *oom)
{
    uint64_t count;

    return read_count(oom->path, &count) && count > oom->seen;
}

static bool is_in_log(struct dt_oom *oom, pid_t pid)
{
    if (oom->log < 0)
        return false;
    read_log(oom);
    for (unsigned i = 0; i < oom->npids && i < DT_OOM_PIDS; i++) {
        if (oom->pids[i] == pid)
            return true;
    }
    return false;
}

bool dt_oom_killed(struct dt_oom *oom, pid_t pid)
{
    bool counted = dt_oom_killed_any(oom);

    oom->seen += counted;
    return counted || is_in_log(oom, pid);
}
