/* Which library a process uses without knowing its place among the ranks. Its maps show what it has
 * loaded, and its environment shows whether a launcher has told it its place. Pure. */
#ifndef DT_AGENT_UNSERVED_MAPPED_H
#define DT_AGENT_UNSERVED_MAPPED_H

#include <stdbool.h>
#include <stddef.h>

enum { DT_MAPPED_PATH = 1000 }; /* bytes of a path; longer paths are truncated */

enum dt_library {
    DT_LIBRARY_HOROVOD = 1,
    DT_LIBRARY_OPENMPI = 2,
    DT_LIBRARY_MPICH = 4, /* or a library of its kind */
    DT_LIBRARY_DTRUN = 8,
};

struct dt_mapped {                /* zero-initialised */
    char openmpi[DT_MAPPED_PATH]; /* the paths of the libraries; empty: not loaded */
    char mpich[DT_MAPPED_PATH];
    char horovod[DT_MAPPED_PATH];
    char dtrun[DT_MAPPED_PATH];
    char pmix[DT_MAPPED_PATH];
    bool openmpi_has_plugin; /* its version loads a plugin when it finds no launcher */
    bool openmpi_alone;      /* it has loaded that plugin */
    bool pmix_has_plugin;    /* PMIx loads a plugin when it is started; set by the caller */
    bool pmix_started;       /* it has loaded that plugin */
};

/* Adds what n bytes of /proc/PID/maps, whole lines, show. Only code counts, because a program may
 * map any file as data. */
void dt_mapped_add(struct dt_mapped *m, const char *maps, size_t n);

/* Returns whether any of the libraries is loaded. */
bool dt_mapped_any(const struct dt_mapped *m);

/* Returns where the plugin is that PMIx loads when it is started, if it has that plugin at all; ""
 * if PMIx is not loaded. */
void dt_mapped_pmix_plugin(const struct dt_mapped *m, char path[DT_MAPPED_PATH]);

/* env holds n bytes, the content of /proc/PID/environ. Returns a library that makes a job of its
 * own of the process, or may do so, because it finds no launcher; else 0. If the library is in
 * served, dtrun has told the ranks their place. Then it counts only if the process has none of its
 * rank's environment: a program may hide MPI from a process that it starts. */
unsigned dt_mapped_unserved(const struct dt_mapped *m, const char *env, size_t n, unsigned served);

/* Returns whether a process with that environment has got nothing of its rank's. */
bool dt_mapped_is_bare(const char *env, size_t n);

/* Returns the path of the library, which *m must contain. */
const char *dt_mapped_path(const struct dt_mapped *m, unsigned library);

#endif
