#include "launcher/job/rank_io.h"

#include <unistd.h>

#include "launcher/base/log.h"

static struct dt_hostlink *link_of(const struct dt_rank_io *io, const struct dt_plan_node *node)
{
    return io->core->links.v[node->host];
}

static int64_t *unpaid_of(const struct dt_rank_io *io, uint32_t number, int fd)
{
    return &io->core->ranks.v[number].unpaid[fd == STDERR_FILENO];
}

void dt_rank_io_shown(const struct dt_rank_io *io, uint32_t number, int fd, size_t n)
{
    struct dt_msg_credit m = { .rank = number, .fd = (uint8_t)fd, .bytes = (uint32_t)n };
    const struct dt_plan_node *node = dt_plan_node_of(&io->core->plan, (int)number);

    if (!node)
        return;
    *unpaid_of(io, number, fd) -= (int64_t)n;
    if (dt_hostlink_has_ranks(link_of(io, node)))
        dt_hostlink_send(link_of(io, node), DT_MSG_CREDIT, &m);
}

static void credit_all(const struct dt_rank_io *io, int fd)
{
    for (uint32_t i = 0; i < io->core->ranks.nprocs; i++)
        dt_rank_io_shown(io, i, fd, DT_STREAM_CREDIT);
}

void dt_rank_io_drop(struct dt_core *core, unsigned streams)
{
    const struct dt_rank_io io = { .core = core };

    core->dropped |= streams;
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        if (streams & dt_core_stream(fd))
            credit_all(&io, fd);
    }
}

/* The stream whose last lines say why a rank died. */
static int tail_fd(const struct dt_rank_io *io)
{
    return io->core->config->merge_stderr ? STDOUT_FILENO : STDERR_FILENO;
}

static size_t count_lines(const char *text, size_t n)
{
    size_t lines = 0;

    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    return lines;
}

bool dt_rank_io_on_output(const struct dt_rank_io *io, const struct dt_msg_output *m)
{
    const struct dt_job_ops *ops = io->core->ops;
    int64_t *unpaid;

    if (m->rank >= io->core->ranks.nprocs)
        return true;
    unpaid = unpaid_of(io, m->rank, m->fd);
    *unpaid += (int64_t)m->data.n;
    if (*unpaid > DT_STREAM_CREDIT)
        return false;
    if (m->fd == tail_fd(io))
        dt_tail_feed(&io->core->ranks.v[m->rank].tail, (const char *)m->data.p, m->data.n);
    if (io->core->outcome.has_cause)
        io->core->outcome.lines_since += count_lines((const char *)m->data.p, m->data.n);
    if (io->core->dropped & dt_core_stream(m->fd))
        dt_rank_io_shown(io, m->rank, m->fd, m->data.n);
    else
        ops->output(ops->arg, m->rank, m->fd, m->data.p, m->data.n);
    return true;
}

void dt_rank_io_on_output_eof(const struct dt_rank_io *io, const struct dt_msg_output_eof *m)
{
    const struct dt_job_ops *ops = io->core->ops;

    if (m->rank >= io->core->ranks.nprocs)
        return;
    ops->output_eof(ops->arg, m->rank, m->fd);
    if (m->fd == tail_fd(io))
        io->core->ranks.v[m->rank].tail_eof = true;
}

void dt_rank_io_on_output_quiet(const struct dt_rank_io *io, const struct dt_msg_output_quiet *m)
{
    if (m->rank < io->core->ranks.nprocs)
        io->core->ops->output_quiet(io->core->ops->arg, m->rank, m->fd);
}

static bool reads_stdin(const struct dt_rank_io *io, const struct dt_plan_node *node)
{
    int rank = io->core->config->stdin_rank;

    return rank == DT_STDIN_ALL || (rank >= 0 && dt_u32s_find(&node->ranks, (uint32_t)rank) >= 0);
}

/* Sends the message once to each host that has ranks which read standard input. */
static void send_stdin(const struct dt_rank_io *io, uint8_t type, const void *msg)
{
    for (size_t i = 0; i < io->core->plan.nnodes; i++) {
        const struct dt_plan_node *node = &io->core->plan.nodes[i];

        if (reads_stdin(io, node) && link_of(io, node))
            dt_hostlink_send(link_of(io, node), type, msg);
    }
}

void dt_rank_io_stdin(struct dt_rank_io *io, const void *data, size_t n)
{
    struct dt_msg_stdin m = { .generation = io->core->generation, .data = { data, n } };

    io->stdin_sent += n;
    send_stdin(io, DT_MSG_STDIN, &m);
}

static void send_stdin_eof(const struct dt_rank_io *io)
{
    struct dt_msg_stdin_eof m = { .generation = io->core->generation };

    send_stdin(io, DT_MSG_STDIN_EOF, &m);
}

void dt_rank_io_stdin_eof(struct dt_rank_io *io)
{
    io->stdin_ended = true;
    send_stdin_eof(io);
}

static void credit(const struct dt_rank_io *io, size_t n)
{
    io->core->ops->stdin_credit(io->core->ops->arg, n);
}

/* A program that expects the beginning of its input may take the rest for all of it, or find
 * nothing to do if no rest is left, and succeed. */
static void tell_where_stdin_goes_on(struct dt_rank_io *io)
{
    if (io->stdin_sent && !io->told_stdin)
        dt_say("standard input continues after its first %llu bytes, which ranks were given "
               "before the restart; a program that must read them again needs them in a file",
               (unsigned long long)io->stdin_sent);
    io->told_stdin = io->stdin_sent;
}

void dt_rank_io_begin(struct dt_rank_io *io)
{
    tell_where_stdin_goes_on(io);
    io->stdin_taken = io->stdin_owed = 0;
    for (size_t i = 0; i < io->core->plan.nnodes; i++)
        link_of(io, &io->core->plan.nodes[i])->stdin_taken = 0;
    if (io->core->config->stdin_rank == DT_STDIN_NONE)
        return;
    if (io->stdin_ended)
        send_stdin_eof(io);
    else
        credit(io, DT_STDIN_CREDIT);
}

void dt_rank_io_continue(struct dt_rank_io *io)
{
    credit(io, io->stdin_owed);
    io->stdin_owed = 0;
}

/* Returns how many bytes all hosts with readers have taken, that is, the slowest of them. */
static uint64_t taken_by_all(const struct dt_rank_io *io)
{
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < io->core->plan.nnodes; i++) {
        const struct dt_plan_node *node = &io->core->plan.nodes[i];
        const struct dt_hostlink *h = link_of(io, node);

        if (reads_stdin(io, node) && h && h->stdin_taken < least)
            least = h->stdin_taken;
    }
    return least;
}

/* An agent also gives credit for bytes that a dead rank did not read. So after a death dtrun reads
 * nothing more until it is clear which ranks will get it. */
void dt_rank_io_on_stdin_credit(struct dt_rank_io *io, struct dt_hostlink *h,
                                const struct dt_msg_stdin_credit *m)
{
    const struct dt_plan_node *node = dt_plan_node_on(&io->core->plan, h->host);
    uint64_t taken;

    if (m->generation != io->core->generation || !node || !reads_stdin(io, node))
        return;
    h->stdin_taken += m->bytes;
    taken = taken_by_all(io) - io->stdin_taken;
    io->stdin_taken += taken;
    if (io->core->state == DT_JOB_STARTING || io->core->state == DT_JOB_RUNNING)
        credit(io, taken);
    else if (io->core->state == DT_JOB_FAILING)
        io->stdin_owed += taken;
}
