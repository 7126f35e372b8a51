#include "launcher/agent/savedir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int dt_savedir_check(const char *dir)
{
    char path[PATH_MAX];
    struct stat st;
    char *slash;

    if (snprintf(path, sizeof path, "%s", dir) >= (int)sizeof path)
        return ENAMETOOLONG;
    /* What is missing will be made below the first directory that is there. */
    while (stat(path, &st) < 0) {
        slash = strrchr(path, '/');
        if (errno != ENOENT || lstat(path, &st) == 0 || !slash)
            return errno;
        slash[slash == path] = '\0';
    }
    if (!S_ISDIR(st.st_mode))
        return ENOTDIR;
    return faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) < 0 ? errno : 0;
}
