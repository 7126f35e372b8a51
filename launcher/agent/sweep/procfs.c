#include "launcher/agent/sweep/procfs.h"

#include <ctype.h>
#include <stdlib.h>
#include <unistd.h>

bool dt_procfs_is_ours(void)
{
    static bool ours; /* once true, it stays so: asked for every process of the host */
    char self[16] = "";

    if (!ours && readlink("/proc/self", self, sizeof self - 1) > 0)
        ours = atoi(self) == (int)getpid();
    return ours;
}

pid_t dt_procfs_next(DIR *dir)
{
    const struct dirent *entry;

    do
        entry = readdir(dir);
    while (entry && !isdigit((unsigned char)entry->d_name[0]));
    return entry ? (pid_t)atoi(entry->d_name) : 0;
}
