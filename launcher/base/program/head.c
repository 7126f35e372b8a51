#include "launcher/base/program/head.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

size_t dt_head_read(const char *path, char *bytes, size_t size)
{
    struct stat st;
    ssize_t n = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        n = read(fd, bytes, size);
    if (fd >= 0)
        close(fd);
    return n > 0 ? (size_t)n : 0;
}
