#include "launcher/job/ckptdir.h"

#include <dirent.h>
#include <string.h>

bool dt_ckptdir_is_used(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *entry;
    bool used = false;

    while (d && !used && (entry = readdir(d)))
        used = strncmp(entry->d_name, "step_", 5) == 0;
    if (d)
        closedir(d);
    return used;
}
