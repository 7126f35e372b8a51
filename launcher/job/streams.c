/* What flows between the ranks and the user: standard input to one rank or all; output, for which
 * their agents get credit as it is dealt with. */
#include <unistd.h>

#include "launcher/job/engine.h"

void dt_job_shown(struct dt_job *j, uint32_t number, int fd, size_t n)
{
    struct dt_msg_credit m = { .rank = number, .fd = (uint8_t)fd, .bytes = (uint32_t)n };
    const struct dt_plan_node *node = dt_plan_node_of(&j->plan, (int)number);

    if (node && dt_hostlink_has_ranks(j->links.v[node->host]))
        dt_hostlink_send(j->links.v[node->host], DT_MSG_CREDIT, &m);
}

void dt_job_output_moved(struct dt_job *j)
{
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
    if (m->rank >= j->ranks.nprocs)
        return;
    if (m->fd == tail_fd(j))
        dt_tail_feed(&j->ranks.v[m->rank].tail, (const char *)m->data.p, m->data.n);
    j->ops->output(j->ops->arg, m->rank, m->fd, m->data.p, m->data.n);
}

void dt_job_on_output_eof(struct dt_job *j, const struct dt_msg_output_eof *m)
{
    if (m->rank >= j->ranks.nprocs)
        return;
    j->ops->output_eof(j->ops->arg, m->rank, m->fd);
    if (m->fd == tail_fd(j)) {
        j->ranks.v[m->rank].tail_eof = true;
    }
}

void dt_job_on_output_quiet(struct dt_job *j, const struct dt_msg_output_quiet *m)
{
    if (m->rank < j->ranks.nprocs)
        j->ops->output_quiet(j->ops->arg, m->rank, m->fd);
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

        if (reads_stdin(j, node) && j->links.v[node->host])
            dt_hostlink_send(j->links.v[node->host], type, msg);
    }
}

void dt_job_stdin(struct dt_job *j, const void *data, size_t n)
{
    struct dt_msg_stdin m = { .generation = j->generation, .data = { data, n } };

    send_stdin(j, DT_MSG_STDIN, &m);
}

static void send_stdin_eof(struct dt_job *j)
{
    struct dt_msg_stdin_eof m = { .generation = j->generation };

    send_stdin(j, DT_MSG_STDIN_EOF, &m);
}

void dt_job_stdin_eof(struct dt_job *j)
{
    j->stdin_ended = true;
    send_stdin_eof(j);
}

void dt_job_start_stdin(struct dt_job *j)
{
    j->stdin_taken = j->stdin_owed = 0;
    for (size_t i = 0; i < j->plan.nnodes; i++)
        j->links.v[j->plan.nodes[i].host]->stdin_taken = 0;
    if (j->config->stdin_rank == DT_STDIN_NONE)
        return;
    if (j->stdin_ended)
        send_stdin_eof(j);
    else
        j->ops->stdin_credit(j->ops->arg, DT_STDIN_CREDIT);
}

void dt_job_continue(struct dt_job *j)
{
    j->ops->stdin_credit(j->ops->arg, j->stdin_owed);
    j->stdin_owed = 0;
    dt_job_check(j);
}

/* What every host has taken: the slowest decides. */
static uint64_t stdin_taken(const struct dt_job *j)
{
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < j->plan.nnodes; i++) {
        const struct dt_plan_node *node = &j->plan.nodes[i];
        const struct dt_hostlink *h = j->links.v[node->host];

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
        j->ops->stdin_credit(j->ops->arg, taken);
    else if (j->state == DT_JOB_FAILING)
        j->stdin_owed += taken;
}
