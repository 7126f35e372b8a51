/* An agent on a slow host: it takes 0.3 s to make a pipe, and so 0.6 s to fork a rank, and four
 * seconds to look at the first process of which it wants to know more than its state. */
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* These replace libc's. */
int pipe2(int fds[2], int flags)
{
    usleep(300 * 1000);
    return (int)syscall(SYS_pipe2, fds, flags);
}

DIR *opendir(const char *path)
{
    static const char threads[] = "/task";
    static bool looked;
    size_t n = strlen(path);
    int fd;

    if (!looked && n > strlen(threads) && strcmp(path + n - strlen(threads), threads) == 0) {
        looked = true;
        sleep(4);
    }
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? NULL : fdopendir(fd);
}
