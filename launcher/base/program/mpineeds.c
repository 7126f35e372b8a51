#include "launcher/base/program/mpineeds.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "launcher/base/program/imports.h"
#include "launcher/base/program/libraries.h"
#include "launcher/base/program/program.h"
#include "launcher/base/program/script.h"
#include "launcher/base/program/words.h"

/* MPICH, Intel MPI and MVAPICH share this soname. They speak PMI-1, unless they link libpmix. */
static const char mpich_abi[] = "libmpi.so.12";

/* A linker that leaves out what is not used (--as-needed) may name only one of them. */
static const char *const served[] = { "libmpi.so.", "libmpi_mpifh.so.", "libmpi_usempif08.so.",
                                      "libmpi_cxx.so.", "libpmix.so." };

/* Packages of Python, and Rmpi and pbdMPI of R, that start MPI when they are imported. */
static const char *const packages[] = { "mpi4py",    "petsc4py", "slepc4py", "dolfinx", "dolfin",
                                        "firedrake", "gpaw",     "meep",     "Rmpi",    "pbdMPI" };

/* The package that has been found. */
static const char *dti_package;

/* Matches "mpi4py" and "mpi4py.bench". */
static bool is_of_package(const char *module)
{
    for (size_t i = 0; i < sizeof packages / sizeof *packages; i++) {
        size_t n = strlen(packages[i]);

        if (strncmp(module, packages[i], n) != 0 || (module[n] && module[n] != '.'))
            continue;
        dti_package = packages[i];
        return true;
    }
    return false;
}

/* A script may import mpi4py in some way of its own. */
static bool has_package(const char *text, size_t n)
{
    dti_package = packages[0];
    return memmem(text, n, packages[0], strlen(packages[0])) ||
           dt_imports_find(text, n, is_of_package);
}

struct evidence {
    const char *search, *libraries;
    char *why;
    size_t size;
};

static bool is_of_mpi(void *arg, const char *library)
{
    const struct evidence *e = arg;

    for (size_t i = 0; i < sizeof served / sizeof *served; i++) {
        if (strncmp(library, served[i], strlen(served[i])) == 0 &&
            strcmp(library, mpich_abi) != 0) {
            snprintf(e->why, e->size, "%s", library);
            return true;
        }
    }
    return false;
}

static bool is_linked(const char *path, struct evidence *e)
{
    return dt_libraries_find(path, e->libraries, is_of_mpi, e);
}

static bool shows_use(void *arg, const char *word)
{
    struct evidence *e = arg, of_word;
    char path[PATH_MAX], library[128];

    if (is_of_package(word)) { /* as in "python3 -m mpi4py.bench" */
        snprintf(e->why, e->size, "%s", word);
        return true;
    }
    of_word = (struct evidence){ e->search, e->libraries, library, sizeof library };
    if (dt_program_find(path, sizeof path, word, e->search) != 0 || !is_linked(path, &of_word))
        return false;
    snprintf(e->why, e->size, "%s in %s", library, path);
    return true;
}

bool dt_mpi_needs_pmix(const char *path, const struct dt_strs *argv, const char *search,
                       const char *libraries, char *why, size_t size)
{
    struct evidence e = { search, libraries, why, size };
    const char *script;

    if (is_linked(path, &e))
        return true;
    script = dt_script_find(path, argv, has_package);
    if (script)
        snprintf(why, size, "%s in %s", dti_package, script);
    return script || dt_words_find(path, argv, shows_use, &e);
}
