#include "launcher/agent/owngroup.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "launcher/base/slurp.h"

enum { FILE_MAX = 64 * 1024 };

/* list: "cpu,cpuacct", or "" in version 2. */
static bool concerns(const char *controller, const char *list)
{
    size_t n = strlen(controller);

    if (n == 0)
        return *list == '\0';
    for (; *list; list += strcspn(list, ","), list += *list == ',')
        if (strcspn(list, ",") == n && memcmp(list, controller, n) == 0)
            return true;
    return false;
}

/* In a line "0::/GROUP" (version 2) or "4:cpu,cpuacct:/GROUP" (version 1); NULL: in another one. */
static const char *group_in(char *line, const char *controller)
{
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;

    if (!group)
        return NULL;
    *group++ = '\0';
    return concerns(controller, controllers + 1) ? group : NULL;
}

char *dt_owngroup(const char *root, const char *controller)
{
    char *path = dt_xasprintf("%s/proc/self/cgroup", root);
    struct dt_strbuf text = { 0 };
    const char *group = NULL;
    char *line, *rest;

    if (dt_slurp(&text, path, FILE_MAX, NULL) == 0 && text.len) {
        rest = text.data;
        while (!group && (line = strsep(&rest, "\n")))
            group = group_in(line, controller);
    }
    free(path);
    path = group ? dt_xstrdup(group) : NULL;
    dt_strbuf_free(&text);
    return path;
}
