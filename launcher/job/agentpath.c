#include "launcher/job/agentpath.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/base/mem.h"
#include "runtime/wire/env.h"

static char *try(char *path)
{
    if (access(path, X_OK) == 0)
        return path;
    free(path);
    return NULL;
}

static char *own_folder(void)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    char *slash;

    if (n <= 0)
        return NULL;
    path[n] = '\0';
    slash = strrchr(path, '/');
    return slash ? dt_xstrndup(path, (size_t)(slash - path)) : NULL;
}

char *dt_agentpath_find(struct dt_error *err)
{
    const char *chosen = getenv(DT_ENV_AGENT);
    char *folder, *found = NULL;

    if (chosen && *chosen) {
        found = try(dt_xstrdup(chosen));
        if (!found)
            dt_error_set(err, "%s=%s: %s", DT_ENV_AGENT, chosen, strerror(errno));
        return found;
    }
    folder = own_folder();
    if (folder)
        found = try(dt_xasprintf("%s/dtrun-agent", folder));
    if (folder && !found)
        found = try(dt_xasprintf("%s/../libexec/dtrun/dtrun-agent", folder));
    if (!found)
        found = try(dt_xstrdup(DT_LIBEXECDIR "/dtrun-agent"));
    if (!found)
        dt_error_set(
            err,
            "dtrun-agent was not found beside dtrun (%s), in ../libexec/dtrun from there, or "
            "in %s; reinstall dtrun, or set %s",
            folder ? folder : "unknown", DT_LIBEXECDIR, DT_ENV_AGENT);
    free(folder);
    return found;
}
