#include "launcher/base/program/script.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool has_script_name(const char *path)
{
    size_t n = strlen(path);

    return n > 3 && strcmp(path + n - 3, ".py") == 0;
}

/* Matches "#!/usr/bin/env python3". */
static bool names_python(const char *text, size_t n)
{
    const char *end = memchr(text, '\n', n);
    size_t line_n = end ? (size_t)(end - text) : n;

    return n > 2 && memcmp(text, "#!", 2) == 0 &&
           memmem(text, line_n, "python", strlen("python")) != NULL;
}

size_t dt_script_read(const char *path, char bytes[DT_SCRIPT_BYTES])
{
    struct stat st;
    ssize_t n = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        n = read(fd, bytes, DT_SCRIPT_BYTES);
    if (fd >= 0)
        close(fd);
    return n > 0 ? (size_t)n : 0;
}

/* An argument may name any file, so only scripts among arguments are read. The program itself is
 * always read. */
static bool is_passing(const char *path, bool is_program, dt_script_test *passes)
{
    static char bytes[DT_SCRIPT_BYTES];
    bool named = has_script_name(path);
    size_t n = named || is_program ? dt_script_read(path, bytes) : 0;

    return n && (named || names_python(bytes, n)) && passes(bytes, n);
}

/* Finds the file of "python3 -m pkg.train" below the working directory. */
static const char *find_module(const char *name, dt_script_test *passes)
{
    static const char *const endings[] = { ".py", "/__main__.py" };
    static char path[PATH_MAX];

    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        if (snprintf(path, sizeof path, "%s%s", name, endings[i]) >= (int)sizeof path)
            continue;
        for (char *dot = path; dot < path + strlen(name); dot++) {
            if (*dot == '.')
                *dot = '/';
        }
        if (is_passing(path, false, passes))
            return path;
    }
    return NULL;
}

const char *dt_script_find(const char *path, const struct dt_strs *argv, dt_script_test *passes)
{
    if (is_passing(path, true, passes))
        return path;
    for (uint32_t i = 1; i < argv->n; i++) {
        const char *module = NULL;

        if (is_passing(argv->v[i], false, passes))
            return argv->v[i];
        if (i > 1 && strcmp(argv->v[i - 1], "-m") == 0)
            module = find_module(argv->v[i], passes);
        if (module)
            return module;
    }
    return NULL;
}
