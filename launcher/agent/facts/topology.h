/* The CPUs that this process may use, and which of them are one core, one package, one NUMA node or
 * share a last-level cache. */
#ifndef DT_AGENT_TOPOLOGY_H
#define DT_AGENT_TOPOLOGY_H

#include "launcher/place/bind.h"

/* How many the affinity mask leaves; what is offline is never in it. */
uint32_t dt_topology_count(void);

/* The same, sorted as dt_bind wants them; the caller frees cpus->v. root: "", or a directory that
 * stands for / where /sys is looked into (tests). Where that tells nothing, each CPU is a core of
 * the one package, and a package is one NUMA node with one cache. */
void dt_topology_read(struct dt_cpus *cpus, const char *root);

/* The same as text, "0-3,8"; the caller frees it. */
char *dt_topology_describe(void);

/* Binds the calling process, and what it will execute, to these. 0, or an errno. */
int dt_topology_bind(const struct dt_u32s *own);

#endif
