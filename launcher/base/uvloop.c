#include "launcher/base/uvloop.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "launcher/base/mem.h"

static void set(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

/* Without a pipe for signals uv_loop_init would abort and say nothing. */
static int check_for_pipe(void)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno; /* which libuv uses as well */
    close(ends[0]);
    close(ends[1]);
    return 0;
}

/* With io_uring, libuv 1.45 to 1.48 may tell the kernel out of order what the loop waits for: when
 * a descriptor's number is used again, the loop sometimes never hears of the new one. A kernel
 * thread runs as well, which counts for ulimit -u. libuv reads the variable once, here, so ranks
 * get what the user has set. */
int dt_uvloop_init(uv_loop_t *loop)
{
    static const char name[] = "UV_USE_IO_URING";
    const char *given = getenv(name);
    char *saved = given ? dt_xstrdup(given) : NULL;
    int rc = check_for_pipe();

    set(name, "0");
    if (rc == 0)
        rc = uv_loop_init(loop);
    set(name, saved);
    free(saved);
    return rc;
}

void dt_uvloop_give_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    static char buffer[64 * 1024];

    (void)handle;
    (void)suggested;
    *buf = (uv_buf_t){ buffer, sizeof buffer };
}

void dt_uvloop_free_data(uv_handle_t *handle)
{
    free(handle->data);
}
