/* For LD_PRELOAD: a file system that hangs. While the file $TEST_STANDSTILL exists, no write to a
 * regular file returns, and no read from one that is standard input. $TEST_STANDSTILL.waits appears
 * when one waits. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { POLL_US = 10 * 1000, PATH_ROOM = 4096 };

static void report_wait(const char *path)
{
    char waits[PATH_ROOM];
    int fd;

    snprintf(waits, sizeof waits, "%s.waits", path);
    fd = open(waits, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
}

static void stand_still(int fd)
{
    const char *path = getenv("TEST_STANDSTILL");
    struct stat st;

    if (path && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        for (; access(path, F_OK) == 0; usleep(POLL_US))
            report_wait(path);
    }
}

__attribute__((visibility("default"))) ssize_t write(int fd, const void *data, size_t n)
{
    ssize_t (*real)(int, const void *, size_t) =
        (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");

    stand_still(fd);
    return real(fd, data, n);
}

__attribute__((visibility("default"))) ssize_t read(int fd, void *data, size_t n)
{
    ssize_t (*real)(int, void *, size_t) =
        (ssize_t(*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");

    if (fd == STDIN_FILENO)
        stand_still(fd);
    return real(fd, data, n);
}
