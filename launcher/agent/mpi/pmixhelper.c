#include "launcher/agent/mpi/pmixhelper.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "launcher/base/error.h"
#include "launcher/base/mem.h"
#include "launcher/base/process.h"
#include "launcher/base/uvloop.h"
#include "runtime/wire/frame.h"

static const char name[] = "dtrun-pmix";
static const char out_of_memory[] =
    "; if nobody killed it, memory may have run out there (see dmesg)";

struct dt_pmixhelper {
    const struct dt_msg_start *start;
    struct dt_pmixhelper_events events;
    void *arg;
    uv_pipe_t pipe;
    uv_idle_t failure; /* reports from the loop why it could not be started */
    char *why;
    struct dt_unframe unframe;
    pid_t pid;  /* 0: it has not been started, or was reaped */
    char *how;  /* how it died, or NULL */
    bool ended; /* its end of the socket is closed */
    bool ready;
    bool closed;
    int open_handles;
};

/* ---- what it sends ---- */

static void give_up(struct dt_pmixhelper *h, const char *why)
{
    if (h->closed)
        return;
    h->closed = true;
    uv_read_stop((uv_stream_t *)&h->pipe);
    h->events.gone(h->arg, why);
}

static bool serve(struct dt_pmixhelper *h, uint8_t type, union dt_msg *m)
{
    switch (type) {
    case DT_MSG_GO:
        if (h->ready)
            return false;
        h->ready = true;
        h->events.ready(h->arg, &m->go.mpi_env);
        return true;
    case DT_MSG_FENCE:
        h->events.fence(h->arg, (const char *)m->fence.data.p, m->fence.data.n);
        return true;
    case DT_MSG_SHARE:
        h->events.share(h->arg, &m->share);
        return true;
    case DT_MSG_EXIT:
        h->events.abort(h->arg, m->exit.rank, m->exit.code);
        return true;
    case DT_MSG_MPI_STATE:
        h->events.state(h->arg, m->mpi_state.rank, m->mpi_state.inside);
        return true;
    case DT_MSG_LOG:
        h->events.log(h->arg, m->log.text);
        return true;
    case DT_MSG_OUTPUT:
        h->events.print(h->arg, &m->output);
        return true;
    default:
        return false;
    }
}

static int on_pmix_message(void *arg, uint8_t type, const uint8_t *payload, size_t n)
{
    union dt_msg m;
    bool served;

    if (dt_msg_decode(type, payload, n, &m) < 0)
        return -1;
    served = serve(arg, type, &m);
    dt_msg_free(type, &m);
    return served ? 0 : -1;
}

static void on_end(struct dt_pmixhelper *h)
{
    uv_read_stop((uv_stream_t *)&h->pipe);
    h->ended = true;
    if (h->how)
        give_up(h, h->how);
}

/* DT_EXIT_NOT_FOUND is the exit code of a shell, and of the dynamic linker, for a program that
 * cannot be started. */
static char *tell_death(const siginfo_t *info)
{
    int pid = (int)info->si_pid, status = info->si_status;

    if (info->si_code != CLD_EXITED)
        return dt_xasprintf("%s (pid %d) was killed by signal %d (%s)%s", name, pid, status,
                            strsignal(status), status == SIGKILL ? out_of_memory : "");
    if (status == DT_EXIT_NOT_FOUND)
        return dt_xasprintf("%s cannot run on this host: install PMIx there (in Debian the package "
                            "libpmix2)",
                            name);
    return dt_xasprintf("%s (pid %d) exited with code %d", name, pid, status);
}

/* If ranks still wait for it, what it sent before it died is read first: that may say why. */
bool dt_pmixhelper_died(struct dt_pmixhelper *h, const siginfo_t *info)
{
    if (!h || !h->pid || info->si_pid != h->pid)
        return false;
    h->pid = 0;
    h->how = tell_death(info);
    if (h->ready || h->ended)
        give_up(h, h->how);
    return true;
}

static void feed(struct dt_pmixhelper *h, const char *bytes, size_t n)
{
    const char *why = NULL;

    if (dt_unframe_feed(&h->unframe, bytes, n, on_pmix_message, h, &why) != 0)
        give_up(h, why ? why : "dtrun-pmix sent a malformed message");
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct dt_pmixhelper *h = stream->data;

    if (n == UV_EOF || n == UV_ECONNRESET)
        on_end(h);
    else if (n < 0)
        give_up(h, uv_strerror((int)n));
    else
        feed(h, buf->base, (size_t)n);
}

void dt_pmixhelper_drain(struct dt_pmixhelper *h)
{
    static char bytes[64 * 1024];
    uv_os_fd_t fd;
    ssize_t n;

    if (!h || h->closed || h->ended || uv_fileno((uv_handle_t *)&h->pipe, &fd) < 0)
        return;
    while (!h->closed && (n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
        feed(h, bytes, (size_t)n);
}

/* ---- what it is sent ---- */

struct sending {
    uv_write_t request; /* first, because libuv returns its address */
    struct dt_put bytes;
};

static void on_sent(uv_write_t *request, int status)
{
    struct sending *s = (struct sending *)request;

    (void)status; /* reading reports the error */
    dt_put_free(&s->bytes);
    free(s);
}

static void send_message(struct dt_pmixhelper *h, uint8_t type, const void *msg)
{
    struct sending *s = dt_xcalloc(1, sizeof *s);
    uv_buf_t buf;

    dt_msg_frame(&s->bytes, type, msg);
    buf = uv_buf_init((char *)s->bytes.data, (unsigned)s->bytes.len);
    if (uv_write(&s->request, (uv_stream_t *)&h->pipe, &buf, 1, on_sent) < 0)
        on_sent(&s->request, 0);
}

void dt_pmixhelper_fenced(struct dt_pmixhelper *h, const struct dt_msg_fenced *m)
{
    if (!h->closed)
        send_message(h, DT_MSG_FENCED, m);
}

void dt_pmixhelper_share(struct dt_pmixhelper *h, const struct dt_msg_share *m)
{
    if (!h->closed)
        send_message(h, DT_MSG_SHARE, m);
}

/* ---- starting it ---- */

/* It was sent with the job, is beside the agent, or is where it was installed. */
static bool find_program(char *path, size_t size, const char *file_dir)
{
    ssize_t n;
    char *slash;

    snprintf(path, size, "%s/%s", file_dir, name);
    if (*file_dir && access(path, X_OK) == 0)
        return true;
    n = readlink("/proc/self/exe", path, size - 1);
    path[n > 0 ? n : 0] = '\0';
    slash = strrchr(path, '/');
    if (slash && (size_t)(slash + 1 - path) + sizeof name <= size) {
        memcpy(slash + 1, name, sizeof name);
        if (access(path, X_OK) == 0)
            return true;
    }
    snprintf(path, size, "%s/%s", DT_LIBEXECDIR, name);
    return access(path, X_OK) == 0;
}

/* PMIx needs 8 MiB, and Open MPI 4 MiB for each rank; with less they fail. This asks for a little
 * more. A container often has only 64 MiB in /dev/shm, which its programs fill. */
static bool has_room(const char *path, uint32_t ranks)
{
    uint64_t need = (12 + 5 * (uint64_t)ranks) << 20;
    struct statvfs fs;

    return statvfs(path, &fs) == 0 && fs.f_bavail * (uint64_t)fs.f_frsize >= need;
}

/* Makes it in memory if possible, because MPI uses files in it as the shared memory of the ranks of
 * a host. */
static int make_dir(char *dir, uint32_t ranks)
{
    static const char *const places[] = { "/dev/shm", "/tmp" };
    size_t first = !has_room(places[0], ranks) && has_room(places[1], ranks);

    for (size_t i = 0; i < 2; i++) {
        snprintf(dir, DT_PMIX_DIR, "%s/dtrun-mpi.XXXXXX", places[(first + i) % 2]);
        if (mkdtemp(dir))
            return 0;
    }
    dir[0] = '\0';
    return -1;
}

/* All signals stay blocked until the program handles those of a job. */
static __attribute__((noreturn)) void run_program(const char *path, const char *dir, int fd,
                                                  pid_t agent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != agent || dup2(fd, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        _exit(DT_EXIT_LAUNCH);
    signal(SIGPIPE, SIG_DFL);
    execl(path, name, dir, (char *)NULL);
    _exit(DT_EXIT_NOT_FOUND);
}

/* Returns NULL, or why there is none. */
static char *open_program(struct dt_pmixhelper *h, char *dir)
{
    pid_t agent = getpid();
    char path[PATH_MAX];
    int ends[2];

    if (!find_program(path, sizeof path, h->start->file_dir))
        return dt_xasprintf("%s is missing: install PMIx (in Debian the package libpmix-dev) and "
                            "build dtrun again",
                            path);
    if (make_dir(dir, h->start->ranks.n) < 0)
        return dt_xasprintf("neither /dev/shm nor /tmp has room for its directory: %s",
                            strerror(errno));
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return dt_xasprintf("socketpair: %s", strerror(errno));
    uv_pipe_open(&h->pipe, ends[0]);
    h->pid = dt_process_fork(-1);
    if (h->pid == 0)
        run_program(path, dir, ends[1], agent);
    if (h->pid < 0) {
        close(ends[1]);
        h->pid = 0;
        return dt_xasprintf("fork: %s", strerror(errno));
    }
    close(ends[1]);
    uv_read_start((uv_stream_t *)&h->pipe, dt_uvloop_give_buffer, on_read);
    send_message(h, DT_MSG_START, h->start);
    return NULL;
}

static void on_failure(uv_idle_t *idle)
{
    struct dt_pmixhelper *h = idle->data;

    uv_idle_stop(idle);
    give_up(h, h->why);
}

struct dt_pmixhelper *dt_pmixhelper_create(uv_loop_t *loop, const struct dt_msg_start *start,
                                           char *dir, const struct dt_pmixhelper_events *events,
                                           void *arg)
{
    struct dt_pmixhelper *h = dt_xcalloc(1, sizeof *h);

    h->start = start;
    h->events = *events;
    h->arg = arg;
    uv_pipe_init(loop, &h->pipe, 0);
    uv_idle_init(loop, &h->failure);
    h->pipe.data = h->failure.data = h;
    h->open_handles = 2;
    h->why = open_program(h, dir);
    if (h->why)
        uv_idle_start(&h->failure, on_failure);
    return h;
}

static void on_pmix_closed(uv_handle_t *handle)
{
    struct dt_pmixhelper *h = handle->data;

    if (--h->open_handles)
        return;
    dt_unframe_free(&h->unframe);
    free(h->why);
    free(h->how);
    free(h);
}

void dt_pmixhelper_destroy(struct dt_pmixhelper *h)
{
    if (!h)
        return;
    h->closed = true;
    uv_close((uv_handle_t *)&h->pipe, on_pmix_closed);
    uv_close((uv_handle_t *)&h->failure, on_pmix_closed);
}
