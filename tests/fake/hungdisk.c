/* For LD_PRELOAD: in the first generation of a job the disk of rank 1 hangs once it has synced as
 * many files as HUNGDISK_AFTER says. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/wire/env.h"

static bool is_hung(void)
{
    static _Atomic int synced;
    const char *rank = getenv(DT_ENV_RANK), *generation = getenv(DT_ENV_GENERATION);

    return rank && strcmp(rank, "1") == 0 && generation && strcmp(generation, "1") == 0 &&
           synced++ >= atoi(getenv("HUNGDISK_AFTER"));
}

/* Replaces libc's. */
__attribute__((visibility("default"))) int fsync(int fd)
{
    while (is_hung())
        pause();
    return (int)syscall(SYS_fsync, fd);
}
