#include "launcher/base/program/installed.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/base/mem.h"
#include "runtime/wire/env.h"

static char *try(char *path, int mode)
{
    if (access(path, mode) == 0)
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

/* Finds a program that dtrun starts. folder is dtrun's own, or NULL. */
static char *find_helper(const char *folder, const char *name)
{
    char *found = NULL;

    if (folder)
        found = try(dt_xasprintf("%s/%s", folder, name), X_OK);
    if (folder && !found)
        found = try(dt_xasprintf("%s/../libexec/dtrun/%s", folder, name), X_OK);
    return found ? found : try(dt_xasprintf("%s/%s", DT_LIBEXECDIR, name), X_OK);
}

char *dt_installed_agent(struct dt_error *err)
{
    const char *chosen = getenv(DT_ENV_AGENT);
    char *folder, *found = NULL;

    if (chosen && *chosen) {
        found = try(dt_xstrdup(chosen), X_OK);
        if (!found)
            dt_error_set(err, "%s=%s: %s", DT_ENV_AGENT, chosen, strerror(errno));
        return found;
    }
    folder = own_folder();
    found = find_helper(folder, "dtrun-agent");
    if (!found)
        dt_error_set(
            err,
            "dtrun-agent was not found beside dtrun (%s), in ../libexec/dtrun from there, or "
            "in %s; reinstall dtrun, or set %s",
            folder ? folder : "unknown", DT_LIBEXECDIR, DT_ENV_AGENT);
    free(folder);
    return found;
}

char *dt_installed_pmix(void)
{
    char *folder = own_folder();
    char *found = find_helper(folder, "dtrun-pmix");

    free(folder);
    return found;
}

char *dt_installed_library(void)
{
    static const char *const places[] = { "../lib", "../runtime/.libs" };
    char *folder = own_folder();
    char *found = NULL;

    for (size_t i = 0; folder && !found && i < sizeof places / sizeof *places; i++)
        found = try(dt_xasprintf("%s/%s/" DT_LIBRARY_FILE, folder, places[i]), R_OK);
    if (!found)
        found = try(dt_xstrdup(DT_LIBDIR "/" DT_LIBRARY_FILE), R_OK);
    free(folder);
    return found;
}
