/* Finds the control group of this process: version 1, version 2, and both side by side (hybrid), on
 * the host or in a container. */
#ifndef DT_BASE_GRANTED_CGROUPDIR_H
#define DT_BASE_GRANTED_CGROUPDIR_H

#include <stdbool.h>

struct dt_cgroupdir {
    int version;
    char *mount; /* where the hierarchy is mounted */
    char *path;  /* the group's path below the mount: "/a/b"; "" is the highest visible group */
};

/* Finds the group in which a controller (such as "memory") is active: of version 1 if that has it,
 * else of version 2. controller "" means version 2 itself. cgroup and mountinfo are the contents of
 * these files in /proc/self. Returns false if there is no such group or it is not visible. Pure. */
bool dt_cgroupdir_parse(struct dt_cgroupdir *d, const char *cgroup, const char *mountinfo,
                        const char *controller);

/* The same for this process. root is "", or a directory that stands for / in tests. */
bool dt_cgroupdir_find(struct dt_cgroupdir *d, const char *root, const char *controller);

/* Calls look with the group's directory and with each directory above it. */
void dt_cgroupdir_climb(const struct dt_cgroupdir *d, void (*look)(void *arg, const char *dir),
                        void *arg);

void dt_cgroupdir_free(struct dt_cgroupdir *d);

#endif
