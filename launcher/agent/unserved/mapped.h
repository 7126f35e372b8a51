/* Which framework a process uses without knowing its place among the ranks. Its maps show what it
 * has loaded, and its environment shows whether a launcher has told it its place. Pure. */
#ifndef DT_AGENT_UNSERVED_MAPPED_H
#define DT_AGENT_UNSERVED_MAPPED_H

#include <stdbool.h>
#include <stddef.h>

enum { DT_MAPPED_PATH = 1024 }; /* bytes of a path; longer paths are truncated */

struct dt_mapped {
    char openmpi[DT_MAPPED_PATH]; /* the path of Open MPI's library, or empty */
    bool openmpi_has_plugin;      /* its version loads a plugin when it finds no launcher */
    bool openmpi_alone;           /* it has loaded that plugin */
    bool mpich;                   /* MPICH or a library of its kind */
    char horovod[DT_MAPPED_PATH]; /* the path of Horovod's library, or empty */
};

/* maps holds n bytes, the content of /proc/PID/maps. Only code counts, because a program may map
 * any file as data. Returns whether *m holds Open MPI or Horovod. */
bool dt_mapped_read(struct dt_mapped *m, const char *maps, size_t n);

/* env holds n bytes, the content of /proc/PID/environ. Returns DT_FRAMEWORK_HOROVOD if Horovod
 * cannot find the other ranks, DT_FRAMEWORK_MPI if a process without Horovod makes an MPI job of
 * its own, or may do so, and else 0. */
unsigned dt_mapped_unserved(const struct dt_mapped *m, const char *env, size_t n);

#endif
