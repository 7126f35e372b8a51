/* The control group that this process is in, as /proc/self/cgroup tells it. */
#ifndef DT_AGENT_OWNGROUP_H
#define DT_AGENT_OWNGROUP_H

/* Its path in the hierarchy of a controller of version 1, as "cpu", or in that of version 2: "".
 * NULL: there is none. root: "", or a directory that stands for / (tests). The caller frees it. */
char *dt_owngroup(const char *root, const char *controller);

#endif
