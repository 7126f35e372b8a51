#include "launcher/session/loop.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "launcher/base/error.h"
#include "launcher/base/log.h"
#include "launcher/base/process.h"
#include "launcher/base/uvloop.h"

enum { FILES_MIN = 24 }; /* open files that a job on this machine alone needs */

/* libuv aborts the process if it cannot open the first descriptors it needs. */
void dt_loop_open(uv_loop_t *loop)
{
    struct rlimit files;
    int rc;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < FILES_MIN) {
        dt_say("only %llu open files are allowed (ulimit -n); dtrun needs at least %d",
               (unsigned long long)files.rlim_cur, FILES_MIN);
        exit(DT_EXIT_LAUNCH);
    }
    rc = dt_uvloop_init(loop);
    if (rc < 0) {
        dt_say("no event loop: %s", uv_strerror(rc));
        exit(DT_EXIT_LAUNCH);
    }
}

void dt_loop_watch_signals(struct dt_loop_signals *signals, uv_loop_t *loop, const int *signos,
                           unsigned n, uv_signal_cb on_signal, void *data)
{
    signals->n = 0;
    for (unsigned i = 0; i < n; i++) {
        bool may_be_ignored = signos[i] == SIGHUP || signos[i] == SIGINT || signos[i] == SIGTSTP;
        uv_signal_t *handle = &signals->v[signals->n];

        if (may_be_ignored && dt_process_ignores(signos[i]))
            continue;
        uv_signal_init(loop, handle);
        handle->data = data;
        uv_signal_start(handle, on_signal, signos[i]);
        signals->n++;
    }
}

void dt_loop_release_signals(struct dt_loop_signals *signals)
{
    for (unsigned i = 0; i < signals->n; i++)
        uv_unref((uv_handle_t *)&signals->v[i]);
}

void dt_loop_close_signals(struct dt_loop_signals *signals)
{
    for (unsigned i = 0; i < signals->n; i++)
        uv_close((uv_handle_t *)&signals->v[i], NULL);
}
