#include "launcher/base/closefrom.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4
#endif

/* Kernels before 5.9 lack the call, and those before 5.11 its flag; then the open descriptors are
 * listed. */
void dt_close_from(int first, bool on_exec)
{
    DIR *dir;
    const struct dirent *entry;

    if (syscall(SYS_close_range, first, ~0U, on_exec ? CLOSE_RANGE_CLOEXEC : 0) == 0)
        return;
    dir = opendir("/proc/self/fd");
    while (dir && (entry = readdir(dir))) {
        int fd = atoi(entry->d_name);

        if (!isdigit((unsigned char)entry->d_name[0]) || fd < first || fd == dirfd(dir))
            continue;
        if (on_exec)
            fcntl(fd, F_SETFD, FD_CLOEXEC);
        else
            close(fd);
    }
    if (dir)
        closedir(dir);
}
