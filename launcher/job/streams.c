/* What flows between the ranks and the user: standard input to one rank or all, output and dtrun's
 * own messages to dtrun's standard output and error. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "launcher/base/log.h"
#include "launcher/base/mem.h"
#include "launcher/job/engine.h"

static void give_credit(struct dt_job *j, uint32_t number, int fd, size_t n)
{
    struct dt_msg_credit m = { .rank = number, .fd = (uint8_t)fd, .bytes = (uint32_t)n };
    const struct dt_plan_node *node = dt_plan_node_of(&j->plan, (int)number);

    if (node && dt_hostlink_has_ranks(j->links[node->host]))
        dt_hostlink_send(j->links[node->host], DT_MSG_CREDIT, &m);
}

/* With --tee a stream gets credit for what has both been written to its file and been shown. */
static void give_tee_credit(struct dt_job *j, uint32_t number, int fd, size_t written, size_t shown)
{
    struct dt_tee *tee = &j->tees[(size_t)(fd == STDERR_FILENO) * j->nprocs + number];
    size_t both;

    tee->written += written;
    tee->shown += shown;
    both = tee->written < tee->shown ? tee->written : tee->shown;
    tee->written -= both;
    tee->shown -= both;
    if (both > 0)
        give_credit(j, number, fd, both);
}

static void on_file_wrote(void *arg, uint32_t number, int fd, size_t n)
{
    struct dt_job *j = arg;

    if (j->config->tee)
        give_tee_credit(j, number, fd, n, 0);
    else
        give_credit(j, number, fd, n);
}

static void on_shown(void *arg, uint32_t number, int fd, uint32_t n)
{
    struct dt_job *j = arg;

    if (j->config->files)
        give_tee_credit(j, number, fd, 0, n);
    else
        give_credit(j, number, fd, n);
}

static void on_file_failed(void *arg, const char *name, int error)
{
    dt_job_on_output_failed(arg, name, error);
}

static void on_output_failed(void *arg, int fd, int error)
{
    if (fd == STDERR_FILENO)
        dt_job_check(arg); /* nobody is there to be told; the job goes on */
    else
        dt_job_on_output_failed(arg, "standard output", error);
}

static void on_output_drained(void *arg)
{
    struct dt_job *j = arg;

    if (j->state == DT_JOB_ENDING)
        dt_job_check(j);
}

/* The stream whose last lines tell why a rank died. */
static int tail_fd(const struct dt_job *j)
{
    return j->config->merge_stderr ? STDOUT_FILENO : STDERR_FILENO;
}

void dt_job_on_output(struct dt_job *j, const struct dt_msg_output *m)
{
    if (m->rank >= j->nprocs)
        return;
    if (m->fd == tail_fd(j))
        dt_tail_feed(&j->ranks[m->rank].tail, (const char *)m->data.p, m->data.n);
    if (j->config->files)
        dt_outfiles_write(j->config->files, m->rank, m->fd, m->data.p, m->data.n);
    if (!j->config->files || j->config->tee)
        dt_outmux_add(j->out, m->rank, m->fd, m->data.p, m->data.n);
}

bool dt_job_is_output_out(const struct dt_job *j)
{
    return dt_outmux_is_drained(j->out) && dt_outfiles_is_drained(j->config->files);
}

void dt_job_on_output_eof(struct dt_job *j, const struct dt_msg_output_eof *m)
{
    if (m->rank >= j->nprocs)
        return;
    dt_outmux_eof(j->out, m->rank, m->fd);
    if (m->fd == tail_fd(j)) {
        j->ranks[m->rank].tail_eof = true;
        dt_job_settle(j);
    }
}

void dt_job_on_output_quiet(struct dt_job *j, const struct dt_msg_output_quiet *m)
{
    dt_outmux_quiet(j->out, m->rank, m->fd);
}

static bool reads_stdin(const struct dt_job *j, const struct dt_plan_node *node)
{
    int rank = j->config->stdin_rank;

    return rank == DT_STDIN_ALL || (rank >= 0 && dt_u32s_find(&node->ranks, (uint32_t)rank) >= 0);
}

/* Once to each host that has ranks which read it. */
static void send_stdin(struct dt_job *j, uint8_t type, const void *msg)
{
    for (size_t i = 0; i < j->plan.nnodes; i++) {
        const struct dt_plan_node *node = &j->plan.nodes[i];

        if (reads_stdin(j, node) && j->links[node->host])
            dt_hostlink_send(j->links[node->host], type, msg);
    }
}

static void on_stdin(void *arg, const void *data, size_t n)
{
    struct dt_job *j = arg;
    struct dt_msg_stdin m = { .generation = j->generation, .data = { data, n } };

    send_stdin(j, DT_MSG_STDIN, &m);
}

static void send_stdin_eof(struct dt_job *j)
{
    struct dt_msg_stdin_eof m = { .generation = j->generation };

    send_stdin(j, DT_MSG_STDIN_EOF, &m);
}

static void on_stdin_eof(void *arg)
{
    struct dt_job *j = arg;

    j->stdin_ended = true;
    send_stdin_eof(j);
}

void dt_job_start_stdin(struct dt_job *j)
{
    j->stdin_taken = j->stdin_owed = 0;
    for (size_t i = 0; i < j->plan.nnodes; i++)
        j->links[j->plan.nodes[i].host]->stdin_taken = 0;
    if (j->config->stdin_rank == DT_STDIN_NONE)
        return;
    if (j->stdin_ended)
        send_stdin_eof(j);
    else
        dt_stdinpump_credit(j->in, DT_STDIN_CREDIT);
}

/* What every host has taken: the slowest decides. */
static uint64_t stdin_taken(const struct dt_job *j)
{
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < j->plan.nnodes; i++) {
        const struct dt_plan_node *node = &j->plan.nodes[i];
        const struct dt_hostlink *h = j->links[node->host];

        if (reads_stdin(j, node) && h && h->stdin_taken < least)
            least = h->stdin_taken;
    }
    return least;
}

/* What a rank that is dead does not take is credited all the same: after a death nothing more is
 * read until it is clear who shall have it. */
void dt_job_on_stdin_credit(struct dt_job *j, struct dt_hostlink *h,
                            const struct dt_msg_stdin_credit *m)
{
    const struct dt_plan_node *node = dt_plan_node_on(&j->plan, h->host);
    uint64_t taken;

    if (m->generation != j->generation || !node || !reads_stdin(j, node))
        return;
    h->stdin_taken += m->bytes;
    taken = stdin_taken(j) - j->stdin_taken;
    j->stdin_taken += taken;
    if (j->state == DT_JOB_STARTING || j->state == DT_JOB_RUNNING)
        dt_stdinpump_credit(j->in, taken);
    else if (j->state == DT_JOB_FAILING)
        j->stdin_owed += taken;
}

static void log_sink(void *arg, const char *line, size_t n)
{
    struct dt_job *j = arg;

    dt_outmux_message(j->out, line, n);
}

void dt_job_open_streams(struct dt_job *j)
{
    struct dt_outmux_config config = {
        .np = j->np,
        .nprocs = j->nprocs,
        .labels = j->config->labels,
        .stamps = j->config->stamps,
    };
    struct dt_outmux_events out = { on_shown, on_output_failed, on_output_drained };
    struct dt_outfiles_events files = { on_file_wrote, on_file_failed, on_output_drained };
    struct dt_stdinpump_events in = { on_stdin, on_stdin_eof };

    j->out = dt_outmux_open(&j->loop, &config, &out, j);
    if (j->config->files) {
        j->tees = dt_xcalloc(2 * (size_t)j->nprocs, sizeof *j->tees);
        dt_outfiles_start(j->config->files, &j->loop, &files, j);
    }
    j->in = dt_stdinpump_open(&j->loop, STDIN_FILENO, &in, j);
    dt_log_set_sink(log_sink, j);
}

void dt_job_close_streams(struct dt_job *j)
{
    dt_log_set_sink(NULL, NULL);
    dt_outmux_close(j->out);
    dt_outfiles_stop(j->config->files);
    free(j->tees);
    dt_stdinpump_close(j->in);
}
