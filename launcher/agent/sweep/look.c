#include "launcher/agent/sweep/look.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "launcher/base/closefrom.h"
#include "launcher/base/mem.h"
#include "launcher/base/process.h"
#include "launcher/base/uvloop.h"
#include "runtime/wire/writeall.h"

_Static_assert(DT_LOOK_ANSWER <= PIPE_BUF, "one read takes all");

struct dt_look {
    uv_poll_t poll; /* its data points to this struct */
    int answer;
    void (*done)(void *arg, const void *answer, size_t n);
    void *arg;
};

/* A look that blocks must keep nothing open on which others wait. */
static __attribute__((noreturn)) void run_look(const struct dt_look_at *at, int out, pid_t agent)
{
    static uint64_t answer[DT_LOOK_ANSWER / sizeof(uint64_t)];

    prctl(PR_SET_NAME, "dtrun-look");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != agent || dup2(out, STDIN_FILENO) < 0)
        _exit(1);
    dt_close_from(STDIN_FILENO + 1, false);
    dt_write_all(STDIN_FILENO, answer, at->look(at->what, agent, answer));
    _exit(0);
}

void dt_look_end(struct dt_look *look)
{
    if (!look)
        return;
    uv_close((uv_handle_t *)&look->poll, dt_uvloop_free_data);
    close(look->answer);
}

static void on_answer(uv_poll_t *poll, int status, int events)
{
    uint64_t answer[DT_LOOK_ANSWER / sizeof(uint64_t)];
    struct dt_look *look = poll->data;
    ssize_t n = read(look->answer, answer, sizeof answer);

    (void)status; /* read reports the error */
    (void)events;
    dt_look_end(look);
    look->done(look->arg, answer, n > 0 ? (size_t)n : 0);
}

struct dt_look *dt_look_begin(uv_loop_t *loop, const struct dt_look_at *at)
{
    pid_t agent = getpid(), pid;
    struct dt_look *look;
    int ends[2], error;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return NULL;
    pid = dt_process_fork(-1);
    if (pid == 0)
        run_look(at, ends[1], agent);
    error = errno;
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        errno = error;
        return NULL;
    }
    look = dt_xcalloc(1, sizeof *look);
    look->answer = ends[0];
    look->done = at->done;
    look->arg = at->arg;
    uv_poll_init(loop, &look->poll, look->answer);
    look->poll.data = look;
    uv_poll_start(&look->poll, UV_READABLE, on_answer);
    return look;
}
