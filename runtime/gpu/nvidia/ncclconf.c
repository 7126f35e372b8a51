#include "runtime/gpu/nvidia/ncclconf.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { USES_HOME = 23000 }; /* the first version of NCCL that uses HOME */

static void users_file(int version, char file[DT_NCCLCONF_TEXT])
{
    const char *named = getenv("NCCL_CONF_FILE"), *home = getenv("HOME");
    char room[4096];
    struct passwd entry, *user = NULL;

    file[0] = '\0';
    if (named && *named)
        snprintf(file, DT_NCCLCONF_TEXT, "%s", named);
    else if (version >= USES_HOME && home)
        snprintf(file, DT_NCCLCONF_TEXT, "%s/.nccl.conf", home);
    else if (version < USES_HOME && getpwuid_r(getuid(), &entry, room, sizeof room, &user) == 0 &&
             user)
        snprintf(file, DT_NCCLCONF_TEXT, "%s/.nccl.conf", user->pw_dir);
}

bool dt_ncclconf_find(const char *name, int version, char value[DT_NCCLCONF_TEXT],
                      char where[DT_NCCLCONF_TEXT])
{
    const char *set = getenv(name);

    if (set) {
        snprintf(value, DT_NCCLCONF_TEXT, "%s", set);
        strcpy(where, "the environment");
        return true;
    }
    users_file(version, where);
    if (dt_ncclfile_find(where, name, value))
        return true;
    strcpy(where, "/etc/nccl.conf");
    return dt_ncclfile_find(where, name, value);
}
