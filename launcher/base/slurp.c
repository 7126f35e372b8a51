#include "launcher/base/slurp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
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

/* Checks the open file, not the path: another user who owns the directory could exchange it. A
 * group may write to it, as is usual with umask 002 and a group for each user. */
static int check_own(int fd, struct dt_error *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return dt_error_set(err, "%s", strerror(errno));
    if ((st.st_uid != geteuid() && st.st_uid != 0) || st.st_mode & S_IWOTH)
        return dt_error_set(err, "another user may write to it; make it yours, with mode 644");
    return 0;
}

static int slurp_path(struct dt_strbuf *b, const char *path, size_t max, bool own,
                      struct dt_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int rc = 0;

    if (fd < 0)
        return dt_error_set(err, "%s", strerror(errno));
    if (own)
        rc = check_own(fd, err);
    if (rc == 0)
        rc = read_all(b, fd, max, err);
    close(fd);
    return rc;
}

int dt_slurp(struct dt_strbuf *b, const char *path, size_t max, struct dt_error *err)
{
    if (strcmp(path, "-") == 0)
        return read_all(b, STDIN_FILENO, max, err);
    return slurp_path(b, path, max, false, err);
}

int dt_slurp_own(struct dt_strbuf *b, const char *path, size_t max, struct dt_error *err)
{
    return slurp_path(b, path, max, true, err);
}
