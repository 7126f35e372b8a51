#include "launcher/base/ckptdir.h"

#include <dirent.h>
#include <string.h>

static bool starts_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool dt_ckptdir_is_used(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *entry;
    bool used = false;

    while (d && !used && (entry = readdir(d)))
        used = starts_with(entry->d_name, "step_") || starts_with(entry->d_name, ".replaced-step_");
    if (d)
        closedir(d);
    return used;
}
