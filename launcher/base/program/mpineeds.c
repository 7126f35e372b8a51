#include "launcher/base/program/mpineeds.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "launcher/base/program/elfneeds.h"
#include "launcher/base/program/program.h"
#include "launcher/base/program/script.h"
#include "launcher/base/program/words.h"

/* MPICH, Intel MPI and MVAPICH share this soname. All of them speak PMI-1. */
static const char mpich_abi[] = "libmpi.so.12";

/* A linker that leaves out what is not used (--as-needed) may name only one of them. */
static const char *const openmpi[] = { "libmpi.so.", "libmpi_mpifh.so.", "libmpi_usempif08.so.",
                                       "libmpi_cxx.so." };

static const char module[] = "mpi4py";

static bool has_module(const char *text, size_t n)
{
    return memmem(text, n, module, strlen(module)) != NULL;
}

static bool is_linked(const char *path, char *why, size_t size)
{
    for (size_t i = 0; i < sizeof openmpi / sizeof *openmpi; i++) {
        if (dt_elf_needs(path, openmpi[i], why, size))
            return strcmp(why, mpich_abi) != 0;
    }
    return false;
}

struct evidence {
    const char *search;
    char *why;
    size_t size;
};

/* Matches "python3 -m mpi4py.bench", and "python3 -c 'from mpi4py import MPI'". */
static bool is_module(const char *word)
{
    size_t n = strlen(module);

    return strncmp(word, module, n) == 0 && (!word[n] || word[n] == '.');
}

static bool shows_use(void *arg, const char *word)
{
    const struct evidence *e = arg;
    char path[PATH_MAX], library[128];

    if (is_module(word)) {
        snprintf(e->why, e->size, "%s", word);
        return true;
    }
    if (dt_program_find(path, sizeof path, word, e->search) != 0 ||
        !is_linked(path, library, sizeof library))
        return false;
    snprintf(e->why, e->size, "%s in %s", library, path);
    return true;
}

bool dt_mpi_needs_pmix(const char *path, const struct dt_strs *argv, const char *search, char *why,
                       size_t size)
{
    struct evidence e = { search, why, size };
    const char *script;

    if (is_linked(path, why, size))
        return true;
    script = dt_script_find(path, argv, has_module);
    if (script)
        snprintf(why, size, "%s in %s", module, script);
    return script || dt_words_find(path, argv, shows_use, &e);
}
