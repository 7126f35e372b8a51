/* The hosts of the batch job that dtrun is started in: a Slurm, PBS, LSF, Grid Engine
 * or OAR allocation, or a hostfile that the environment gives to mpirun or mpiexec. Pure except for
 * the two functions it is given. It reads these variables and never sets them. */
#ifndef DT_HOSTS_SCHEDULER_H
#define DT_HOSTS_SCHEDULER_H

#include "launcher/base/strbuf.h"
#include "launcher/hosts/hostlist.h"

struct dt_scheduler_view {
    const char *(*variable)(const char *name, void *arg); /* NULL when unset */
    /* Appends the content of the file at path to text. Returns 0, or -1 with the reason in err. */
    int (*file)(struct dt_strbuf *text, const char *path, void *arg, struct dt_error *err);
    void *arg;
};

/* Returns the allocation's name for messages, as in "the Slurm allocation", or NULL outside of any.
 */
const char *dt_scheduler_name(const struct dt_scheduler_view *view);
bool dt_scheduler_is_slurm(const struct dt_scheduler_view *view);

/* Adds the allocation's hosts and slots to list, which is empty, in the scheduler's order. Outside
 * of an allocation it adds nothing. On a mistake, err is "VARIABLE: what is wrong", with exit code
 * 2. */
int dt_scheduler_hosts(struct dt_hostlist *list, const struct dt_scheduler_view *view,
                       struct dt_error *err);

#endif
