#include "launcher/base/program/horovodneeds.h"

#include <stdio.h>
#include <string.h>

#include "launcher/base/program/imports.h"
#include "launcher/base/program/script.h"

static bool is_of_horovod(const char *module)
{
    static const char package[] = "horovod";
    size_t n = strlen(package);

    return strncmp(module, package, n) == 0 && (!module[n] || module[n] == '.');
}

static bool imports_horovod(const char *text, size_t n)
{
    return dt_imports_find(text, n, is_of_horovod);
}

bool dt_horovod_is_used(const char *path, const struct dt_strs *argv, char *why, size_t size)
{
    const char *script = dt_script_find(path, argv, imports_horovod);

    *why = '\0';
    if (script)
        snprintf(why, size, "import horovod in %s", script);
    return script != NULL;
}
