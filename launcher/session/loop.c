#include "launcher/session/loop.h"

#include <stdlib.h>
#include <sys/resource.h>

#include "launcher/base/error.h"
#include "launcher/base/log.h"

enum { FILES_MIN = 24 }; /* for one local host */

/* libuv aborts the process where it cannot open the first descriptors it needs. */
void dt_loop_open(uv_loop_t *loop)
{
    struct rlimit files;
    int rc;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < FILES_MIN) {
        dt_say("only %llu open files are allowed (ulimit -n); dtrun needs at least %d",
               (unsigned long long)files.rlim_cur, FILES_MIN);
        exit(DT_EXIT_LAUNCH);
    }
    rc = uv_loop_init(loop);
    if (rc < 0) {
        dt_say("no event loop: %s", uv_strerror(rc));
        exit(DT_EXIT_LAUNCH);
    }
}
