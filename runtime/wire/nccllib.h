/* Where NCCL's library is looked for, by libdtrun in a rank and by the agent for --check: the file
 * that DTRUN_NCCL names, and no other; what the process itself has; what the dynamic linker finds
 * by its name; then what pip has installed, for the Python environment that is active, for the
 * user, or for all. */
#ifndef DT_WIRE_NCCLLIB_H
#define DT_WIRE_NCCLLIB_H

#include <stdbool.h>

#define DT_NCCLLIB_NAME "libnccl.so.2"
#define DT_NCCLLIB_PIP  "nvidia/nccl/lib/" DT_NCCLLIB_NAME /* below Python's packages */

struct dt_nccllib_search {
    const char *root; /* "", or a directory that stands for / (tests) */
    /* True ends the search. A file without a '/' is the dynamic linker's to find. */
    bool (*own)(void *arg); /* NULL: this process is not the one that is to use it */
    bool (*take)(void *arg, const char *file);
    void *arg;
};

/* Whether anything was taken. */
bool dt_nccllib_find(const struct dt_nccllib_search *s);

#endif
