#include "cmd/programword.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/base/program/head.h"
#include "launcher/base/program/program.h"

static int find(const char *name)
{
    char path[PATH_MAX];

    return dt_program_find(path, sizeof path, name, getenv("PATH"));
}

static bool begins_with_interpreter(const char *path)
{
    char mark[2] = "";

    dt_head_read(path, mark, sizeof mark);
    return memcmp(mark, "#!", sizeof mark) == 0;
}

static bool is_python_file(const char *path)
{
    size_t n = strlen(path);
    struct stat st;

    return n > 3 && strcmp(path + n - 3, ".py") == 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

int dt_programword_check(const char *name, const char *wdir, struct dt_error *err)
{
    bool has_slash = strchr(name, '/');

    if ((wdir && *name != '/') || !is_python_file(name) ||
        (!has_slash && dt_programword_is_here(name)))
        return 0;
    if (access(name, X_OK) < 0 || !begins_with_interpreter(name))
        return dt_error_usage(err, "%.200s cannot be executed by itself: write python3 %.200s",
                              name, name);
    if (has_slash)
        return 0;
    return dt_error_usage(err, "%.200s is not in PATH: write ./%.200s, or python3 %.200s", name,
                          name, name);
}

bool dt_programword_is_here(const char *name)
{
    return find(name) == 0;
}

bool dt_programword_may_be_host(const char *word)
{
    static const char host[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@";

    return !word[strspn(word, host)] && strpbrk(word, "0123456789.@") && find(word) == ENOENT;
}
