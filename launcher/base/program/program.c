#include "launcher/base/program/program.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/base/program/head.h"

static const char default_search[] = "/usr/local/bin:/usr/bin:/bin";

static int check_executable(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return errno;
    if (S_ISDIR(st.st_mode))
        return EISDIR;
    return access(path, X_OK) < 0 ? errno : 0;
}

/* The file is the name in the first n bytes of dir. */
static void write_path(char *path, size_t size, const char *dir, size_t n, const char *name)
{
    snprintf(path, size, "%.*s/%s", n ? (int)n : 1, n ? dir : ".", name);
}

/* A directory that may not be searched, as root's after su, has no programs for this user. */
int dt_program_find(char *path, size_t size, const char *name, const char *search)
{
    const char *denied = NULL; /* the directory of the first file that may not be executed */
    struct stat st;
    size_t n;

    if (strchr(name, '/') || !*name) {
        snprintf(path, size, "%s", name);
        return check_executable(path);
    }
    for (const char *dir = search ? search : default_search; dir;
         dir = dir[n] ? dir + n + 1 : NULL) {
        int rc;

        n = strcspn(dir, ":");
        write_path(path, size, dir, n, name);
        rc = check_executable(path);
        if (rc == 0)
            return 0;
        if (rc == EACCES && !denied && stat(path, &st) == 0)
            denied = dir;
    }
    if (denied)
        write_path(path, size, denied, strcspn(denied, ":"), name);
    else
        snprintf(path, size, "%s", name);
    return denied ? EACCES : ENOENT;
}

/* Reads the interpreter that the first line names; returns false if there is no such line. */
static bool read_interpreter(char *interpreter, size_t size, const char *path)
{
    char line[256] = "";
    const char *at = line + 2;

    dt_head_read(path, line, sizeof line - 1);
    if (memcmp(line, "#!", 2) != 0)
        return false;
    at += strspn(at, " \t");
    snprintf(interpreter, size, "%.*s", (int)strcspn(at, " \t\n"), at);
    return true;
}

int dt_program_explain(char *what, size_t size, const char *path, int error)
{
    char interpreter[256];

    if (error == ENOEXEC) {
        snprintf(what, size,
                 "%s is neither a program for this machine nor a script that begins with #!", path);
    } else if (error == ENOENT && access(path, F_OK) == 0) {
        error = ENOEXEC;
        if (!read_interpreter(interpreter, sizeof interpreter, path))
            snprintf(what, size, "%s was built for another system: its loader is missing", path);
        else if (strchr(interpreter, '\r'))
            snprintf(what, size, "%s has lines that end in CR LF: the system looks for %.*s\\r",
                     path, (int)strcspn(interpreter, "\r"), interpreter);
        else
            snprintf(what, size, "%s begins with #!%s, which does not exist", path, interpreter);
    } else if (error == E2BIG) {
        snprintf(what, size,
                 "%s: its arguments and environment exceed the limit of the host (ulimit -s); "
                 "--unset removes variables",
                 path);
    } else {
        snprintf(what, size, "%s", path);
    }
    return error;
}
