#include "launcher/agent/sweep/leftovers.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/agent/sweep/procenv.h"
#include "launcher/agent/sweep/procfs.h"
#include "launcher/base/pidfd.h"
#include "runtime/wire/env.h"

bool dt_leftovers_parse(const char *text, size_t n, const char *job_id, uint32_t *generation)
{
    const char *job = dt_procenv_find(text, n, DT_ENV_JOB_ID);
    const char *number = dt_procenv_find(text, n, DT_ENV_GENERATION);

    if (!job || !number || strcmp(job, job_id) != 0)
        return false;
    *generation = (uint32_t)strtoul(number, NULL, 10);
    return true;
}

/* Opens the descriptor before it reads the environment, so that the signal never reaches another
 * process to which the id has passed since. */
static bool kill_if_left(pid_t pid, const char *job_id, uint32_t before, struct dt_leftover *left)
{
    struct dt_strbuf text = { 0 };
    int fd = dt_pidfd_open(pid), rc;
    uint32_t generation = before;

    if (dt_procenv_read(&text, pid))
        dt_leftovers_parse(text.data, text.len, job_id, &generation);
    dt_strbuf_free(&text);
    if (generation < before) {
        /* Linux before 5.3 has no pidfds, and some containers refuse them. */
        rc = fd < 0 ? kill(pid, SIGKILL) : dt_pidfd_kill(fd);
        *left = (struct dt_leftover){ pid, rc < 0 ? errno : 0 };
    }
    if (fd >= 0)
        close(fd);
    return generation < before && left->error != ESRCH;
}

size_t dt_leftovers_kill(const char *job_id, uint32_t generation, struct dt_leftover *example)
{
    DIR *proc = opendir("/proc");
    size_t living = 0;
    pid_t pid;

    while (proc && (pid = dt_procfs_next(proc))) {
        struct dt_leftover left;

        if (!kill_if_left(pid, job_id, generation, &left))
            continue;
        if (living++ == 0 || left.error)
            *example = left;
    }
    if (proc)
        closedir(proc);
    return living;
}
