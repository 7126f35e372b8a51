#include "launcher/agent/ranks/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include "launcher/base/mem.h"
#include "launcher/base/slurp.h"

enum { NAME_MAX_BYTES = 64, FILE_MAX = 64 };

/* No byte is echoed, translated or taken for a signal or for flow control. */
static int make_raw(int fd)
{
    struct termios settings;

    if (tcgetattr(fd, &settings) < 0)
        return -1;
    cfmakeraw(&settings);
    return tcsetattr(fd, TCSANOW, &settings);
}

static void close_both(int ends[2])
{
    int error = errno;

    for (int i = 0; i < 2; i++) {
        if (ends[i] >= 0)
            close(ends[i]);
        ends[i] = -1;
    }
    errno = error;
}

/* Opens /dev/ptmx itself: posix_openpt of some C libraries changes the error. */
int dt_pty_open(int ends[2])
{
    char name[NAME_MAX_BYTES];

    ends[0] = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    ends[1] = -1;
    if (ends[0] >= 0 && unlockpt(ends[0]) == 0 && ptsname_r(ends[0], name, sizeof name) == 0)
        ends[1] = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (ends[1] >= 0 && make_raw(ends[1]) == 0)
        return 0;
    close_both(ends);
    return -1;
}

static char *describe_limit(uint32_t n)
{
    struct dt_strbuf max = { 0 };
    char *text;

    dt_slurp(&max, "/proc/sys/kernel/pty/max", FILE_MAX, NULL);
    text = dt_xasprintf("too few pseudo-terminals are left for %u process%s (--unbuffered): "
                        "kernel.pty.max is %d for the whole host; /dev/pts may have a lower max",
                        n, n == 1 ? "" : "es", atoi(dt_strbuf_text(&max)));
    dt_strbuf_free(&max);
    return text;
}

char *dt_pty_lack(int *error, uint32_t n)
{
    if (*error != ENOSPC)
        return dt_xstrdup("a pseudo-terminal from /dev/ptmx and /dev/pts (--unbuffered)");
    *error = 0;
    return describe_limit(n);
}
