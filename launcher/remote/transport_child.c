#include "launcher/remote/transport_child.h"

#include <limits.h>
#include <stdlib.h>

#include "launcher/base/mem.h"
#include "launcher/base/program/program.h"

/* A shell does it, because libuv resets all signals in a child. If the program does not exist,
 * libuv is to report that. */
void dt_transport_child_shield(struct dt_strs *argv)
{
    struct dt_strs shielded = { 0 };
    char path[PATH_MAX];

    if (dt_program_find(path, sizeof path, argv->v[0], getenv("PATH")) != 0)
        return;
    dt_xstrs_add(&shielded, "/bin/sh"); /* PATH may lack it */
    dt_xstrs_add(&shielded, "-c");
    dt_xstrs_add(&shielded, "trap '' HUP INT TERM USR1 USR2; exec \"$0\" \"$@\"");
    for (uint32_t i = 0; i < argv->n; i++)
        dt_xstrs_add(&shielded, argv->v[i]);
    dt_strs_free(argv);
    *argv = shielded;
}

static struct dt_child *child_of(const struct dt_transport *t)
{
    return ((const struct dt_transport_child *)(const void *)t)->child;
}

void dt_transport_child_write(struct dt_transport *t, const void *bytes, size_t n)
{
    dt_child_write(child_of(t), bytes, n);
}

size_t dt_transport_child_pending(const struct dt_transport *t)
{
    return dt_child_pending(child_of(t));
}

void dt_transport_child_close(struct dt_transport *t)
{
    dt_child_close(child_of(t));
}
