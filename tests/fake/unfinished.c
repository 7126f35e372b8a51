/* For LD_PRELOAD: the process is killed when it is about to make the directory into which older
 * checkpoints are set aside. */
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
