#include "runtime/wire/writeall.h"

#include <errno.h>
#include <unistd.h>

int dt_write_all(int fd, const void *data, size_t n)
{
    const char *p = data;

    while (n) {
        ssize_t done = write(fd, p, n);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -1;
        p += done;
        n -= (size_t)done;
    }
    return 0;
}
