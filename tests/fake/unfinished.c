/* For LD_PRELOAD: kills the process just before it makes the directory in which older checkpoints
 * are set aside. */
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((visibility("default"))) int mkdirat(int dir, const char *name, mode_t mode)
{
    if (strncmp(name, "earlier-", 8) == 0)
        raise(SIGKILL);
    return (int)syscall(SYS_mkdirat, dir, name, mode);
}
