#include "runtime/gpu/ncclconf.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As NCCL does: NAME=VALUE, without blanks; the first line of a name holds. */
static bool find_in(const char *file, const char *name, char value[DT_NCCLCONF_TEXT])
{
    FILE *f = fopen(file, "re");
    size_t length = strlen(name);
    char *line = NULL;
    size_t room = 0;
    bool found = false;

    while (f && !found && getline(&line, &room, f) > 0) {
        found = strncmp(line, name, length) == 0 && line[length] == '=';
        if (found)
            snprintf(value, DT_NCCLCONF_TEXT, "%.*s", (int)strcspn(line + length + 1, "\n"),
                     line + length + 1);
    }
    free(line);
    if (f)
        fclose(f);
    return found;
}

static void users_file(char file[DT_NCCLCONF_TEXT])
{
    const char *named = getenv("NCCL_CONF_FILE");
    char room[4096];
    struct passwd entry, *user = NULL;

    file[0] = '\0';
    if (named && *named)
        snprintf(file, DT_NCCLCONF_TEXT, "%s", named);
    else if (getpwuid_r(getuid(), &entry, room, sizeof room, &user) == 0 && user)
        snprintf(file, DT_NCCLCONF_TEXT, "%s/.nccl.conf", user->pw_dir);
}

bool dt_ncclconf_find(const char *name, char value[DT_NCCLCONF_TEXT], char where[DT_NCCLCONF_TEXT])
{
    const char *set = getenv(name);

    if (set) {
        snprintf(value, DT_NCCLCONF_TEXT, "%s", set);
        strcpy(where, "the environment");
        return true;
    }
    users_file(where);
    if (find_in(where, name, value))
        return true;
    strcpy(where, "/etc/nccl.conf");
    return find_in(where, name, value);
}
