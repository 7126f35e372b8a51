/* Searches for NCCL's library, for libdtrun in a rank and for the agent's --check. If DTRUN_NCCL
 * names a file, only that one is tried. Otherwise, in this order: the library that the process has
 * already loaded, one in a folder of LD_LIBRARY_PATH, those that pip has installed for the active
 * Python environment, for the user or for all users, and the system's, which the dynamic linker
 * finds. */
#ifndef DT_WIRE_NCCLLIB_H
#define DT_WIRE_NCCLLIB_H

#include <stdbool.h>

#define DT_NCCLLIB_NAME "libnccl.so.2"
#define DT_NCCLLIB_PIP  "nvidia/nccl/lib/" DT_NCCLLIB_NAME /* below Python's site-packages */

struct dt_nccllib_search {
    const char *root; /* "", or a directory that replaces / (tests) */
    /* Each returns true to end the search. A file name without '/' is searched for by the dynamic
     * linker. */
    bool (*own)(void *arg); /* NULL: this process will not use it */
    bool (*take)(void *arg, const char *file);
    void *arg;
};

/* Whether a library was accepted. */
bool dt_nccllib_find(const struct dt_nccllib_search *s);

#endif
