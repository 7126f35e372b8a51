#include "launcher/base/program/libraries.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/base/program/elfneeds.h"

enum { FILES_MAX = 64 };

#if defined(__aarch64__)
#define OF_DEBIAN "/usr/lib/aarch64-linux-gnu"
#else
#define OF_DEBIAN "/usr/lib/x86_64-linux-gnu"
#endif

static const char usual[] = OF_DEBIAN ":/lib64:/usr/lib64:/usr/local/lib:/lib:/usr/lib";
static const char *const origins[] = { "$ORIGIN", "${ORIGIN}" };

/* The program, and the libraries found so far. */
static struct {
    char paths[FILES_MAX][PATH_MAX];
    size_t n;
    size_t read; /* the number of the file that is being read */
    const char *folders;
    dt_libraries_test *passes;
    void *arg;
} dti_libraries;

/* Returns whether there is such a file. */
static bool add_file(const char *before, int before_n, const char *folder, int folder_n,
                     const char *name)
{
    char *path = dti_libraries.paths[dti_libraries.n];

    if (snprintf(path, PATH_MAX, "%.*s%.*s/%s", before_n, before, folder_n, folder, name) >=
            PATH_MAX ||
        access(path, R_OK) != 0)
        return false;
    for (size_t i = 0; i < dti_libraries.n; i++) {
        if (strcmp(dti_libraries.paths[i], path) == 0)
            return true;
    }
    dti_libraries.n++;
    return true;
}

/* $ORIGIN stands for the folder of the file that names it. */
static bool add_from(const char *folder, size_t n, const char *name)
{
    const char *reader = dti_libraries.paths[dti_libraries.read];

    for (size_t i = 0; i < sizeof origins / sizeof *origins; i++) {
        size_t origin_n = strlen(origins[i]);

        if (n >= origin_n && memcmp(folder, origins[i], origin_n) == 0)
            return add_file(reader, (int)(strrchr(reader, '/') - reader), folder + origin_n,
                            (int)(n - origin_n), name);
    }
    return n && add_file("", 0, folder, (int)n, name);
}

static bool add_from_list(const char *list, const char *name)
{
    while (*list) {
        size_t n = strcspn(list, ":");

        if (add_from(list, n, name))
            return true;
        list += n + (list[n] == ':');
    }
    return false;
}

static bool visit(void *arg, const char *name, const char *folders)
{
    (void)arg;
    if (dti_libraries.passes(dti_libraries.arg, name))
        return true;
    if (dti_libraries.n < FILES_MAX && !add_from_list(folders, name) &&
        !add_from_list(dti_libraries.folders, name))
        add_from_list(usual, name);
    return false;
}

bool dt_libraries_find(const char *path, const char *folders, dt_libraries_test *passes, void *arg)
{
    if (!realpath(path, dti_libraries.paths[0]))
        return false;
    dti_libraries.n = 1;
    dti_libraries.folders = folders ? folders : "";
    dti_libraries.passes = passes;
    dti_libraries.arg = arg;
    for (size_t i = 0; i < dti_libraries.n; i++) {
        dti_libraries.read = i;
        if (dt_elf_needed(dti_libraries.paths[i], visit, NULL))
            return true;
    }
    return false;
}
