#include "launcher/base/program/mpineeds.h"

#include <stdio.h>
#include <string.h>

#include "launcher/base/program/elfneeds.h"
#include "launcher/base/program/script.h"

/* MPICH, Intel MPI and MVAPICH share this soname. All of them speak PMI-1. */
static const char mpich_abi[] = "libmpi.so.12";

static const char module[] = "mpi4py";

static bool has_module(const char *text, size_t n)
{
    return memmem(text, n, module, strlen(module)) != NULL;
}

bool dt_mpi_needs_pmix(const char *path, const struct dt_strs *argv, char *why, size_t size)
{
    const char *script;

    if (dt_elf_needs(path, "libmpi.so.", why, size))
        return strcmp(why, mpich_abi) != 0;
    script = dt_script_find(path, argv, has_module);
    if (script)
        snprintf(why, size, "%s in %s", module, script);
    return script != NULL;
}
