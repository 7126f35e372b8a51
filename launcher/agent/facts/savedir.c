#include "launcher/agent/facts/savedir.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int dt_savedir_check(const char *dir, char at[PATH_MAX])
{
    struct stat st;
    char *slash;

    if (snprintf(at, PATH_MAX, "%s", dir) >= PATH_MAX)
        return ENAMETOOLONG;
    /* Missing directories are created below the first one that exists, but a symbolic link to
     * nowhere is an error. */
    while (stat(at, &st) < 0) {
        slash = strrchr(at, '/');
        if (errno != ENOENT || lstat(at, &st) == 0 || !slash)
            return errno;
        slash[slash == at] = '\0'; /* keeps the slash of "/" */
    }
    if (!S_ISDIR(st.st_mode))
        return ENOTDIR;
    return access(at, W_OK | X_OK) < 0 ? errno : 0;
}
