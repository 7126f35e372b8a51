/* Where the control group of this process is: version 1, version 2, and both beside each other
 * (hybrid), on the host or in a container. */
#ifndef DT_AGENT_CGROUPDIR_H
#define DT_AGENT_CGROUPDIR_H

#include <stdbool.h>

struct dt_cgroupdir {
    int version;
    char *mount; /* where the hierarchy is mounted, */
    char *path;  /* and the group's place below it: "/a/b", or "": it is the top that can be seen */
};

/* The group whose controller ("memory", say) is in force: of version 1 where that has it, else of
 * version 2. "" stands for version 2 itself. cgroup and mountinfo are what these files of
 * /proc/self hold. Returns false where there is none, or it cannot be seen. Pure. */
bool dt_cgroupdir_parse(struct dt_cgroupdir *d, const char *cgroup, const char *mountinfo,
                        const char *controller);

/* The same for this process. root: "", or a directory that stands for / (tests). */
bool dt_cgroupdir_find(struct dt_cgroupdir *d, const char *root, const char *controller);

/* Shows the group's directory and those of all above it. */
void dt_cgroupdir_climb(const struct dt_cgroupdir *d, void (*look)(void *arg, const char *dir),
                        void *arg);

void dt_cgroupdir_free(struct dt_cgroupdir *d);

#endif
