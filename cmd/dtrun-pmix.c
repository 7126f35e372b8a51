/* dtrun-pmix: the PMIx server beside an agent whose ranks are an Open MPI program. It is a separate
 * program, because libpmix is a shared library with plugins and the agent is one static file.
 *
 * It talks to its agent over standard input, a socket, in messages of PROTOCOL.md. It receives
 * START and answers with GO, of which only mpi_env counts. It sends FENCE and receives FENCED.
 * SHARE goes both ways. It also sends MPI_STATE, LOG, OUTPUT, and EXIT for a rank that called
 * MPI_Abort. It exits when that socket ends.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/pmix/server.h"
#include "launcher/base/error.h"
#include "launcher/base/mem.h"
#include "launcher/base/process.h"
#include "runtime/wire/frame.h"
#include "runtime/wire/msg.h"
#include "runtime/wire/writeall.h"

static struct {
    union dt_msg start; /* empty until it arrives */
    bool started;
    bool refused_spawn;
} dti_helper;

static void send_message(uint8_t type, const void *msg)
{
    static char too_long[] = "the MPI ranks of this host exchange more than 64 MiB at a time, "
                             "which dtrun cannot pass on: let each publish less";
    const struct dt_msg_log why = { .text = too_long };
    struct dt_put bytes = { 0 };

    dt_msg_frame(&bytes, type, msg);
    if (bytes.failed)
        send_message(DT_MSG_LOG, &why);
    if (bytes.failed || dt_write_all(STDIN_FILENO, bytes.data, bytes.len) < 0)
        _exit(DT_EXIT_LAUNCH); /* the agent is gone, or reports that this server is */
    dt_put_free(&bytes);
}

static void on_fence(const char *data, size_t n)
{
    const struct dt_msg_fence m = { dti_helper.start.start.generation,
                                    { (const uint8_t *)data, n } };

    send_message(DT_MSG_FENCE, &m);
}

static void on_share(struct dt_msg_share *m)
{
    m->generation = dti_helper.start.start.generation;
    send_message(DT_MSG_SHARE, m);
}

/* The agent kills the rank before the rank has read all answers. libpmix would complain of that on
 * standard error. */
static void on_abort(uint32_t rank, int exit_code)
{
    const struct dt_msg_exit m = { .generation = dti_helper.start.start.generation,
                                   .rank = rank,
                                   .code = exit_code };

    if (!freopen("/dev/null", "w", stderr))
        fclose(stderr);
    send_message(DT_MSG_EXIT, &m);
}

static void on_state(uint32_t rank, bool inside)
{
    const struct dt_msg_mpi_state m = { dti_helper.start.start.generation, rank, inside };

    send_message(DT_MSG_MPI_STATE, &m);
}

static void on_spawn_refused(uint32_t rank)
{
    char *text = dt_xasprintf("rank %u (%s): MPI_Comm_spawn fails: dtrun starts all processes of a "
                              "job at once; see dtrun-frameworks(7)",
                              rank, dti_helper.start.start.host);
    const struct dt_msg_log m = { .text = text };

    if (!dti_helper.refused_spawn)
        send_message(DT_MSG_LOG, &m);
    dti_helper.refused_spawn = true;
    free(text);
}

/* Sends pieces that the agent can write to a pipe as a whole. */
static void on_print(uint32_t rank, uint8_t stream, const char *text)
{
    size_t left = strlen(text);

    while (left) {
        size_t n = left < PIPE_BUF ? left : PIPE_BUF;
        const struct dt_msg_output m = { rank, stream, { (const uint8_t *)text, n } };

        send_message(DT_MSG_OUTPUT, &m);
        text += n;
        left -= n;
    }
}

static int on_start(const char *dir)
{
    static const struct dt_pmix_events events = { on_fence, on_share,         on_abort,
                                                  on_state, on_spawn_refused, on_print };
    struct dt_msg_go go = { .generation = dti_helper.start.start.generation };
    struct dt_error err = { 0 };

    dti_helper.started = true;
    if (dt_pmix_open(&dti_helper.start.start, dir, &events, &err) < 0 ||
        dt_pmix_environment(&go.mpi_env, &err) < 0) {
        const struct dt_msg_log m = { .text = err.text };

        send_message(DT_MSG_LOG, &m);
        return -1;
    }
    send_message(DT_MSG_GO, &go);
    dt_strs_free(&go.mpi_env);
    return 0;
}

/* A non-zero result ends the program. */
static int on_agent_message(void *arg, uint8_t type, const uint8_t *payload, size_t n)
{
    union dt_msg m;
    bool known = true;

    if (type == DT_MSG_START && !dti_helper.started)
        return dt_msg_decode(type, payload, n, &dti_helper.start) < 0 ? -1 : on_start(arg);
    if ((type != DT_MSG_FENCED && type != DT_MSG_SHARE) || dt_msg_decode(type, payload, n, &m) < 0)
        return -1;
    if (type == DT_MSG_FENCED)
        dt_pmix_fenced((const char *)m.fenced.data.p, m.fenced.data.n);
    else
        known = dt_pmix_shared(&m.share);
    dt_msg_free(type, &m);
    return known ? 0 : -1;
}

static void on_job_signal(int signo)
{
    (void)signo;
}

/* A batch system may send these to every process of a job, and ranks that then save still need
 * their server. The agent has blocked them. They are not ignored, because agents wait for processes
 * that ignore them to clean up. */
static void survive_job_signals(void)
{
    static const int signos[] = { SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2 };

    for (size_t i = 0; i < sizeof signos / sizeof *signos; i++)
        signal(signos[i], on_job_signal);
    dt_process_unblock_signals();
}

int main(int argc, char **argv)
{
    static struct dt_unframe unframe;
    static char bytes[64 * 1024];
    const char *why = NULL;
    ssize_t n;

    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("dtrun-pmix %s\n", PACKAGE_VERSION);
        return 0;
    }
    if (argc != 2 || isatty(STDIN_FILENO)) {
        fprintf(stderr, "dtrun-pmix is started by dtrun-agent beside Open MPI programs, not by "
                        "hand\n");
        return DT_EXIT_USAGE;
    }
    survive_job_signals();
    do {
        n = read(STDIN_FILENO, bytes, sizeof bytes);
        if (n > 0 &&
            dt_unframe_feed(&unframe, bytes, (size_t)n, on_agent_message, argv[1], &why) != 0)
            return DT_EXIT_LAUNCH;
    } while (n > 0 || (n < 0 && errno == EINTR));
    return 0; /* the agent removes the files in argv[1] */
}
