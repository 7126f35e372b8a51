#include "launcher/agent/unserved/mapped.h"

#include <stdio.h>
#include <string.h>

#include "launcher/agent/sweep/procenv.h"
#include "launcher/place/frameworks.h"

/* A line of maps: "ADDRESSES PERMISSIONS OFFSET DEVICE INODE PATH". Only PATH has slashes. */
struct mapping {
    const char *path;
    size_t path_n;
    const char *file; /* the last part of path */
    size_t file_n;
};

static bool begins_with(const struct mapping *map, const char *prefix)
{
    size_t n = strlen(prefix);

    return map->file_n >= n && memcmp(map->file, prefix, n) == 0;
}

static bool ends_with(const char *text, size_t text_n, const char *ending)
{
    size_t n = strlen(ending);

    return text_n >= n && memcmp(text + text_n - n, ending, n) == 0;
}

/* Returns whether the line maps a file's code. */
static bool parse_line(struct mapping *map, const char *line, size_t n)
{
    static const char deleted[] = " (deleted)"; /* what the kernel adds if the file was removed */
    const char *permissions = memchr(line, ' ', n);
    const char *path = memchr(line, '/', n);
    const char *slash;

    if (!path || !permissions || path - permissions < 4 || permissions[3] != 'x')
        return false;
    map->path = path;
    map->path_n = n - (size_t)(path - line);
    if (ends_with(path, map->path_n, deleted))
        map->path_n -= strlen(deleted);
    slash = memrchr(path, '/', map->path_n);
    map->file = slash + 1;
    map->file_n = (size_t)(path + map->path_n - map->file);
    return true;
}

/* Horovod has one library for each framework, as in "horovod/torch/mpi_lib_v2.cpython-311.so". */
static bool is_horovod(const struct mapping *map)
{
    static const char package[] = "/horovod/";

    return begins_with(map, "mpi_lib") && ends_with(map->file, map->file_n, ".so") &&
           memmem(map->path, map->path_n, package, strlen(package));
}

static void note(char path[DT_MAPPED_PATH], const struct mapping *map)
{
    snprintf(path, DT_MAPPED_PATH, "%.*s", (int)map->path_n, map->path);
}

static void read_line(struct dt_mapped *m, const char *line, size_t n)
{
    struct mapping map;

    if (!parse_line(&map, line, n))
        return;
    if (begins_with(&map, "libmpi.so.12") || begins_with(&map, "libmpich.so."))
        m->mpich = true;
    else if (begins_with(&map, "libmpi.so."))
        note(m->openmpi, &map);
    else if (begins_with(&map, "libopen-rte.so."))
        m->openmpi_has_plugin = true;
    else if (begins_with(&map, "mca_ess_singleton.so"))
        m->openmpi_alone = true;
    else if (is_horovod(&map))
        note(m->horovod, &map);
}

bool dt_mapped_read(struct dt_mapped *m, const char *maps, size_t n)
{
    const char *end = maps + n;

    *m = (struct dt_mapped){ 0 };
    while (maps < end) {
        const char *stop = memchr(maps, '\n', (size_t)(end - maps));
        size_t line_n = (size_t)((stop ? stop : end) - maps);

        read_line(m, maps, line_n);
        maps += line_n + 1;
    }
    return *m->openmpi || *m->horovod;
}

/* Up to version 4, Open MPI has its plugin for processes without a launcher in memory if it uses
 * it, and otherwise only for a moment while it chooses. Programs such as PyTorch may load Open MPI
 * and never start it. */
static bool makes_own_job(const struct dt_mapped *m, bool has_pmix)
{
    return *m->openmpi && !has_pmix && (m->openmpi_alone || !m->openmpi_has_plugin);
}

/* If Horovod was built with MPI, it learns its place from MPI. The agent always serves MPICH. */
static bool searches_in_vain(const struct dt_mapped *m, bool has_pmix, bool has_rank)
{
    return !has_rank && !m->mpich && !(*m->openmpi && has_pmix);
}

unsigned dt_mapped_unserved(const struct dt_mapped *m, const char *env, size_t n)
{
    bool has_pmix = dt_procenv_find(env, n, "PMIX_NAMESPACE");
    bool has_rank = dt_procenv_find(env, n, "HOROVOD_RANK");

    if (*m->horovod)
        return searches_in_vain(m, has_pmix, has_rank) ? DT_FRAMEWORK_HOROVOD : 0;
    return makes_own_job(m, has_pmix) ? DT_FRAMEWORK_MPI : 0;
}
