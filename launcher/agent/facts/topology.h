/* The CPUs that this process may use, and which of them share a core, a package, a NUMA node or a
 * last-level cache. */
#ifndef DT_AGENT_FACTS_TOPOLOGY_H
#define DT_AGENT_FACTS_TOPOLOGY_H

#include "launcher/place/bind.h"

/* Lists them, sorted as dt_bind expects; the caller frees cpus->v. root is "", or a directory that
 * stands for / in tests, with /sys in it. If nothing is known there, each CPU is a core of a single
 * package, with one NUMA node and one cache. */
void dt_topology_read(struct dt_cpus *cpus, const char *root);

/* Returns them as text, "0-3,8"; the caller frees it. */
char *dt_topology_describe(void);

/* Binds the calling process, and the program that it will execute, to these CPUs. Returns 0, or an
 * errno. */
int dt_topology_bind(const struct dt_u32s *own);

#endif
