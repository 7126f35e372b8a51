/* A directory for the files of one test. It is in memory if possible: an fsync costs nothing there,
 * and is checked all the same. */
#ifndef TESTS_UNIT_CHECKPOINT_SCRATCH_H
#define TESTS_UNIT_CHECKPOINT_SCRATCH_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char base[64];

static inline int make_base(void **state)
{
    (void)state;
    snprintf(base, sizeof base, "%s/dtrun-checkpoint-XXXXXX",
             access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    return mkdtemp(base) ? 0 : -1;
}

static inline int remove_base(void **state)
{
    char command[80];

    (void)state;
    if (seteuid(getuid()) != 0) /* if a test failed as another user */
        return -1;
    snprintf(command, sizeof command, "rm -rf %s", base);
    return system(command);
}

#endif
