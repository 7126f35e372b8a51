#include "launcher/agent/sweep/proclist.h"

#include <stdlib.h>

#include "launcher/agent/sweep/procfs.h"
#include "launcher/base/mem.h"

static int by_pid(const void *a, const void *b)
{
    const struct dt_proclist_process *x = a;
    const struct dt_proclist_process *y = b;

    return x->pid < y->pid ? -1 : x->pid > y->pid;
}

void dt_proclist_add(struct dt_proclist *list, const struct dt_proclist_process *p)
{
    if (list->n == list->cap) {
        list->cap = list->cap ? 2 * list->cap : 256;
        list->v = dt_xrealloc(list->v, list->cap, sizeof *list->v);
    }
    list->v[list->n++] = *p;
}

void dt_proclist_read(struct dt_proclist *list, void (*alive)(void *arg), void *arg)
{
    DIR *proc = opendir("/proc");
    pid_t pid;

    while (proc && (pid = dt_procfs_next(proc))) {
        struct dt_proclist_process p = { .pid = pid };

        if (dt_procstat_read(&p.stat, pid))
            dt_proclist_add(list, &p);
        if (alive)
            alive(arg);
    }
    if (proc)
        closedir(proc);
    if (list->n)
        qsort(list->v, list->n, sizeof *list->v, by_pid);
}

void dt_proclist_free(struct dt_proclist *list)
{
    free(list->v);
    *list = (struct dt_proclist){ 0 };
}

const struct dt_proclist_process *dt_proclist_find(const struct dt_proclist *list, pid_t pid)
{
    struct dt_proclist_process key = { .pid = pid };

    return list->n ? bsearch(&key, list->v, list->n, sizeof key, by_pid) : NULL;
}

pid_t dt_proclist_branch(const struct dt_proclist *list, const struct dt_proclist_process *p,
                         pid_t top)
{
    /* A reused pid could close a cycle, which the bound breaks. */
    for (size_t hops = 0; p && hops < list->n; hops++) {
        if (p->stat.parent == top)
            return p->pid;
        p = dt_proclist_find(list, p->stat.parent);
    }
    return 0;
}
