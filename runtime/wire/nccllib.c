#include "runtime/wire/nccllib.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/wire/env.h"

static bool take_library_path(const struct dt_nccllib_search *s)
{
    const char *at = secure_getenv("LD_LIBRARY_PATH");
    char file[PATH_MAX];

    while (at && *at) {
        int n = (int)strcspn(at, ":");

        if (n && snprintf(file, sizeof file, "%.*s/" DT_NCCLLIB_NAME, n, at) < (int)sizeof file &&
            access(file, R_OK) == 0 && s->take(s->arg, file))
            return true;
        at += n + (at[n] == ':');
    }
    return false;
}

/* python: the name of a version's folder. */
static bool take_version(const struct dt_nccllib_search *s, const char *prefix, const char *python)
{
    static const char *const packages[] = { "site-packages", "dist-packages" };
    char file[PATH_MAX];

    for (size_t i = 0; i < sizeof packages / sizeof *packages; i++) {
        int n = snprintf(file, sizeof file, "%s%s/lib/%s/%s/" DT_NCCLLIB_PIP, s->root, prefix,
                         python, packages[i]);

        if (n < (int)sizeof file && access(file, F_OK) == 0 && s->take(s->arg, file))
            return true;
    }
    return false;
}

/* Searches for what pip installs below a prefix:
 * .../lib/python3.12/site-packages/nvidia/nccl/lib. */
static bool take_python(const struct dt_nccllib_search *s, const char *prefix)
{
    const struct dirent *entry;
    char path[PATH_MAX];
    bool taken = false;
    DIR *folder;

    if (snprintf(path, sizeof path, "%s%s/lib", s->root, prefix) >= (int)sizeof path)
        return false;
    folder = opendir(path);
    while (folder && !taken && (entry = readdir(folder)))
        taken = strncmp(entry->d_name, "python3", 7) == 0 && take_version(s, prefix, entry->d_name);
    if (folder)
        closedir(folder);
    return taken;
}

static bool take_active_python(const struct dt_nccllib_search *s, const char *variable)
{
    const char *prefix = secure_getenv(variable);

    return prefix && *prefix && take_python(s, prefix);
}

static bool take_users_python(const struct dt_nccllib_search *s)
{
    const char *home = secure_getenv("HOME");
    char prefix[PATH_MAX];

    return home && *home &&
           snprintf(prefix, sizeof prefix, "%s/.local", home) < (int)sizeof prefix &&
           take_python(s, prefix);
}

bool dt_nccllib_find(const struct dt_nccllib_search *s)
{
    const char *named = secure_getenv(DT_ENV_NCCL);

    if (named && *named)
        return s->take(s->arg, named);
    return (s->own && s->own(s->arg)) || take_library_path(s) ||
           take_active_python(s, "VIRTUAL_ENV") || take_active_python(s, "CONDA_PREFIX") ||
           take_users_python(s) || take_python(s, "/usr/local") || take_python(s, "/usr") ||
           s->take(s->arg, DT_NCCLLIB_NAME);
}
