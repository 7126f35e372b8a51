#include "launcher/agent/sweep/ncclfiles.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { COUNT_MAX = 0xffff }; /* more ranks than any host has */

bool dt_ncclfiles_is_name(const char *name)
{
    static const char prefix[] = "nccl-";
    size_t n = 0;

    if (strncmp(name, prefix, strlen(prefix)) != 0)
        return false;
    name += strlen(prefix);
    while (isalnum((unsigned char)name[n]))
        n++;
    return n == strlen("XXXXXX") && name[n] == '\0';
}

/* Such a file ends with the number of ranks that have not mapped it yet. An empty one may have been
 * made just now: a new file has its name an instant before the kernel counts who has it open. */
static bool is_ncclfile(int fd)
{
    struct stat st;
    int count;

    return fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
           st.st_mode == (S_IFREG | S_IRUSR | S_IWUSR) && st.st_size > (off_t)sizeof count &&
           pread(fd, &count, sizeof count, st.st_size - (off_t)sizeof count) == sizeof count &&
           count >= 0 && count <= COUNT_MAX;
}

/* The kernel grants this lease only if nobody has the file open or mapped for writing, in whatever
 * namespace. /proc would not show that: a user may not read all of his own processes. A process
 * that opens the file meanwhile waits until the lease ends, and this one gets a signal, which would
 * end it if it were the usual one (SIGIO). */
static bool take_lease(int fd)
{
    return fcntl(fd, F_SETSIG, SIGURG) == 0 && fcntl(fd, F_SETLEASE, F_RDLCK) == 0;
}

static bool remove_if_left(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool removed;

    if (fd < 0)
        return false;
    removed = is_ncclfile(fd) && take_lease(fd) && unlinkat(dir, name, 0) == 0;
    close(fd);
    return removed;
}

/* Other file systems may not know of every process that has a file open. */
static bool is_tmpfs(int dir)
{
    struct statfs fs;

    return fstatfs(dir, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

size_t dt_ncclfiles_remove(const char *path, void (*alive)(void *arg), void *arg)
{
    DIR *dir = opendir(path);
    size_t removed = 0;

    if (!dir)
        return 0;
    if (is_tmpfs(dirfd(dir))) {
        const struct dirent *entry;

        while ((entry = readdir(dir))) {
            if (!dt_ncclfiles_is_name(entry->d_name))
                continue;
            removed += remove_if_left(dirfd(dir), entry->d_name);
            if (alive)
                alive(arg);
        }
    }
    closedir(dir);
    return removed;
}
