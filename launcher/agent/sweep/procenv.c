#include "launcher/agent/sweep/procenv.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/agent/sweep/procfs.h"
#include "launcher/base/mem.h"
#include "launcher/base/slurp.h"

enum { ENVIRON_MAX = 16 * 1024 * 1024 };

/* A process whose main thread has ended shows its environment only in its other threads. */
bool dt_procenv_read(struct dt_strbuf *text, pid_t pid)
{
    char *path = dt_xasprintf("/proc/%d/task", (int)pid);
    DIR *tasks = dt_procfs_is_ours() ? opendir(path) : NULL;
    pid_t tid;

    while (tasks && !text->len && (tid = dt_procfs_next(tasks))) {
        char *file = dt_xasprintf("%s/%d/environ", path, (int)tid);

        dt_slurp(text, file, ENVIRON_MAX, NULL);
        free(file);
    }
    if (tasks)
        closedir(tasks);
    free(path);
    return text->len > 0;
}

const char *dt_procenv_find(const char *text, size_t n, const char *name)
{
    size_t name_n = strlen(name);
    const char *value = NULL;

    for (const char *end = text + n, *next; (next = memchr(text, '\0', (size_t)(end - text)));
         text = next + 1) {
        if (strncmp(text, name, name_n) == 0 && text[name_n] == '=')
            value = text + name_n + 1;
    }
    return value;
}
