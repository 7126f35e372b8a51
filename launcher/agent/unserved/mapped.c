#include "launcher/agent/unserved/mapped.h"

#include <stdio.h>
#include <string.h>

#include "launcher/agent/sweep/procenv.h"
#include "runtime/wire/env.h"

/* PMIx has its plugin for compression in memory as long as it runs. */
#define PMIX_PLUGIN "pmix_mca_pcompress_zlib.so"

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
        note(m->mpich, &map);
    else if (begins_with(&map, "libmpi.so."))
        note(m->openmpi, &map);
    else if (begins_with(&map, "libpmix.so."))
        note(m->pmix, &map);
    else if (begins_with(&map, PMIX_PLUGIN))
        m->pmix_started = true;
    else if (begins_with(&map, "libopen-rte.so."))
        m->openmpi_has_plugin = true;
    else if (begins_with(&map, "mca_ess_singleton.so"))
        m->openmpi_alone = true;
    else if (begins_with(&map, "libdtrun.so."))
        note(m->dtrun, &map);
    else if (is_horovod(&map))
        note(m->horovod, &map);
}

void dt_mapped_add(struct dt_mapped *m, const char *maps, size_t n)
{
    const char *end = maps + n;

    while (maps < end) {
        const char *stop = memchr(maps, '\n', (size_t)(end - maps));
        size_t line_n = (size_t)((stop ? stop : end) - maps);

        read_line(m, maps, line_n);
        maps += line_n + 1;
    }
}

bool dt_mapped_any(const struct dt_mapped *m)
{
    return *m->openmpi || *m->mpich || *m->horovod || *m->dtrun;
}

void dt_mapped_pmix_plugin(const struct dt_mapped *m, char path[DT_MAPPED_PATH])
{
    const char *slash = strrchr(m->pmix, '/');

    *path = '\0';
    if (slash)
        snprintf(path, DT_MAPPED_PATH, "%.*s/pmix/" PMIX_PLUGIN, (int)(slash - m->pmix), m->pmix);
}

/* Programs such as PyTorch may load Open MPI and never start it. Up to version 4, Open MPI has its
 * plugin for processes without a launcher in memory if it uses it, and otherwise only for a moment
 * while it chooses. Later versions have no such plugin, but start PMIx. */
static bool openmpi_is_alone(const struct dt_mapped *m, bool has_pmix)
{
    if (has_pmix)
        return false;
    return m->openmpi_has_plugin ? m->openmpi_alone : m->pmix_started || !m->pmix_has_plugin;
}

/* mpiexec and srun set one of these, as dtrun does. */
static bool has_pmi(const char *env, size_t n)
{
    return dt_procenv_find(env, n, "PMI_FD") || dt_procenv_find(env, n, "PMI_PORT") ||
           dt_procenv_find(env, n, "PMI_RANK") || dt_procenv_find(env, n, "PMIX_NAMESPACE");
}

/* If Horovod was built with MPI, it learns its place from MPI. */
static bool horovod_is_alone(const struct dt_mapped *m, const char *env, size_t n, bool has_pmix)
{
    return !dt_procenv_find(env, n, "HOROVOD_RANK") && !(*m->mpich && has_pmi(env, n)) &&
           !(*m->openmpi && has_pmix);
}

static unsigned alone(const struct dt_mapped *m, const char *env, size_t n)
{
    bool has_pmix = dt_procenv_find(env, n, "PMIX_NAMESPACE");

    if (*m->horovod)
        return horovod_is_alone(m, env, n, has_pmix) ? DT_LIBRARY_HOROVOD : 0;
    if (*m->openmpi && openmpi_is_alone(m, has_pmix))
        return DT_LIBRARY_OPENMPI;
    if (*m->mpich && !has_pmi(env, n))
        return DT_LIBRARY_MPICH;
    return *m->dtrun && !dt_procenv_find(env, n, DT_ENV_ALONE) ? DT_LIBRARY_DTRUN : 0;
}

bool dt_mapped_is_bare(const char *env, size_t n)
{
    return !dt_procenv_find(env, n, DT_ENV_RANK);
}

unsigned dt_mapped_unserved(const struct dt_mapped *m, const char *env, size_t n, unsigned served)
{
    unsigned library = alone(m, env, n);

    return library & served && !dt_mapped_is_bare(env, n) ? 0 : library;
}

const char *dt_mapped_path(const struct dt_mapped *m, unsigned library)
{
    switch (library) {
    case DT_LIBRARY_HOROVOD:
        return m->horovod;
    case DT_LIBRARY_OPENMPI:
        return m->openmpi;
    case DT_LIBRARY_MPICH:
        return m->mpich;
    default:
        return m->dtrun;
    }
}
