#include "launcher/agent/sweep/leftovers.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "launcher/base/mem.h"
#include "launcher/base/slurp.h"
#include "runtime/wire/env.h"

enum { ENVIRON_MAX = 16 * 1024 * 1024 };

/* Returns the value of an entry NAME=VALUE, or NULL if it has another name. */
static const char *value_in(const char *entry, const char *name)
{
    size_t n = strlen(name);

    return strncmp(entry, name, n) == 0 && entry[n] == '=' ? entry + n + 1 : NULL;
}

bool dt_leftovers_parse(const char *text, size_t n, const char *job_id, uint32_t *generation)
{
    const char *job = NULL, *number = NULL;

    /* An entry that the end of the text truncates does not count. */
    for (const char *end = text + n, *next; (next = memchr(text, '\0', (size_t)(end - text)));
         text = next + 1) {
        if (value_in(text, DT_ENV_JOB_ID))
            job = value_in(text, DT_ENV_JOB_ID);
        else if (value_in(text, DT_ENV_GENERATION))
            number = value_in(text, DT_ENV_GENERATION);
    }
    if (!job || !number || strcmp(job, job_id) != 0)
        return false;
    *generation = (uint32_t)strtoul(number, NULL, 10);
    return true;
}

/* A process whose main thread has ended shows its environment only in its other threads. */
static bool read_environ(struct dt_strbuf *text, pid_t pid)
{
    char *path = dt_xasprintf("/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    const struct dirent *task;

    while (tasks && !text->len && (task = readdir(tasks))) {
        char *file = dt_xasprintf("%s/%s/environ", path, task->d_name);

        if (isdigit((unsigned char)task->d_name[0]))
            dt_slurp(text, file, ENVIRON_MAX, NULL);
        free(file);
    }
    if (tasks)
        closedir(tasks);
    free(path);
    return text->len > 0;
}

/* Opens the descriptor before it looks. If the id is another process's by then, the signal reaches
 * no process. */
static bool kill_if_left(pid_t pid, const char *job_id, uint32_t before, struct dt_leftover *left)
{
    struct dt_strbuf text = { 0 };
    int fd = pidfd_open(pid, 0), rc;
    bool old_kernel = fd < 0 && errno == ENOSYS; /* before Linux 5.3 */
    uint32_t generation = before;

    if (fd < 0 && !old_kernel)
        return false;
    if (read_environ(&text, pid))
        dt_leftovers_parse(text.data, text.len, job_id, &generation);
    dt_strbuf_free(&text);
    if (generation < before) {
        rc = old_kernel ? kill(pid, SIGKILL) : pidfd_send_signal(fd, SIGKILL, NULL, 0);
        *left = (struct dt_leftover){ pid, rc < 0 ? errno : 0 };
    }
    if (fd >= 0)
        close(fd);
    return generation < before && left->error != ESRCH;
}

size_t dt_leftovers_kill(const char *job_id, uint32_t generation, struct dt_leftover *example)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;
    size_t living = 0;

    while (proc && (entry = readdir(proc))) {
        struct dt_leftover left;

        if (!isdigit((unsigned char)entry->d_name[0]) ||
            !kill_if_left((pid_t)atoi(entry->d_name), job_id, generation, &left))
            continue;
        if (living++ == 0 || left.error)
            *example = left;
    }
    if (proc)
        closedir(proc);
    return living;
}
