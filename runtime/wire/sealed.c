#include "runtime/wire/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/wire/highfd.h"

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

int dt_sealed_create(const char *name, size_t bytes)
{
    int fd = dt_fd_high(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    int error;

    if (fd < 0)
        return -1;
    if (ftruncate(fd, (off_t)bytes) == 0 && fcntl(fd, F_ADD_SEALS, SEALS) == 0)
        return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

bool dt_sealed_check(int fd, size_t bytes)
{
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);

    if (seals < 0 || fstat(fd, &st) < 0)
        return false;
    errno = EPROTO;
    return (seals & SEALS) == SEALS && (uint64_t)st.st_size == bytes;
}
