#include "launcher/base/mpineeds.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/base/elfneeds.h"

enum { SCRIPT_BYTES = 64 * 1024 };

/* What MPICH, Intel MPI and MVAPICH call their library alike; all of them speak PMI-1. */
static const char mpich_abi[] = "libmpi.so.12";

static bool is_script_name(const char *path)
{
    size_t n = strlen(path);

    return n > 3 && strcmp(path + n - 3, ".py") == 0;
}

/* Only regular files are opened: a pipe would be waited for. */
static bool has_text(const char *path, const char *text)
{
    static char bytes[SCRIPT_BYTES];
    struct stat st;
    ssize_t n = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        n = read(fd, bytes, sizeof bytes);
    if (fd >= 0)
        close(fd);
    return n > 0 && memmem(bytes, (size_t)n, text, strlen(text));
}

static bool is_mpi4py(const char *script, char *why, size_t size)
{
    if (!is_script_name(script) || !has_text(script, "mpi4py"))
        return false;
    snprintf(why, size, "mpi4py in %s", script);
    return true;
}

bool dt_mpi_needs_pmix(const char *path, const struct dt_strs *argv, char *why, size_t size)
{
    if (dt_elf_needs(path, "libmpi.so.", why, size))
        return strcmp(why, mpich_abi) != 0;
    if (is_mpi4py(path, why, size))
        return true;
    for (uint32_t i = 1; i < argv->n; i++) {
        if (is_mpi4py(argv->v[i], why, size))
            return true;
    }
    return false;
}
