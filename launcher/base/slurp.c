#include "launcher/base/slurp.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int read_all(struct dt_strbuf *b, int fd, size_t max, struct dt_error *err)
{
    char chunk[4 * 1024];
    size_t total = 0;

    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return dt_error_set(err, "%s", strerror(errno));
        if (n == 0)
            return 0;
        total += (size_t)n;
        if (total > max)
            return dt_error_set(err, "larger than %zu bytes", max);
        dt_strbuf_add(b, chunk, (size_t)n);
    }
}

int dt_slurp(struct dt_strbuf *b, const char *path, size_t max, struct dt_error *err)
{
    int fd, rc;

    if (strcmp(path, "-") == 0)
        return read_all(b, STDIN_FILENO, max, err);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return dt_error_set(err, "%s", strerror(errno));
    rc = read_all(b, fd, max, err);
    close(fd);
    return rc;
}
