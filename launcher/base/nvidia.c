#include "launcher/base/nvidia.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/base/mem.h"
#include "launcher/base/slurp.h"

enum { FILE_MAX = 64 * 1024 };

static int is_entry(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

const char *dt_nvidia_value(const char *information, const char *key)
{
    const char *at = strstr(information, key);

    at = at ? at + strlen(key) : NULL;
    return at ? at + strspn(at, " \t") : NULL;
}

/* A container may see only some of the driver's GPUs: those with a device file. */
static bool is_visible(const char *root, const char *information)
{
    const char *minor = dt_nvidia_value(information, "Device Minor:");
    char *path = minor ? dt_xasprintf("%s/dev/nvidia%d", root, atoi(minor)) : NULL;
    bool visible = path && access(path, F_OK) == 0;

    free(path);
    return visible;
}

bool dt_nvidia_each(const char *root, void (*see)(void *arg, const char *information), void *arg)
{
    char *dir = dt_xasprintf("%s/proc/driver/nvidia/gpus", root);
    struct dirent **entries;
    int n = scandir(dir, &entries, is_entry, alphasort);

    for (int i = 0; i < n; i++) {
        char *path = dt_xasprintf("%s/%s/information", dir, entries[i]->d_name);
        struct dt_strbuf text = { 0 };

        if (dt_slurp(&text, path, FILE_MAX, NULL) == 0 && is_visible(root, dt_strbuf_text(&text)))
            see(arg, dt_strbuf_text(&text));
        dt_strbuf_free(&text);
        free(path);
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    free(dir);
    return n >= 0;
}
