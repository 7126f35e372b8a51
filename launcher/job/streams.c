/* What flows between the ranks and the user: standard input to one rank or all; output, for which
 * their agents get credit as it is dealt with. */
#include <unistd.h>

#include "launcher/job/engine.h"

void dt_job_shown(struct dt_job *j, uint32_t number, int fd, size_t n)
{
    struct dt_msg_credit m = { .rank = number, .fd = (uint8_t)fd, .bytes = (uint32_t)n };
    const struct dt_plan_node *node = dt_plan_node_of(&j->core.plan, (int)number);

    if (node && dt_hostlink_has_ranks(j->core.links.v[node->host]))
        dt_hostlink_send(j->core.links.v[node->host], DT_MSG_CREDIT, &m);
}

void dt_job_output_moved(struct dt_job *j)
{
    if (j->core.state == DT_JOB_ENDING)
        dt_core_check(&j->core);
}

/* The stream whose last lines tell why a rank died. */
static int tail_fd(const struct dt_job *j)
{
    return j->core.config->merge_stderr ? STDOUT_FILENO : STDERR_FILENO;
}

void dt_job_on_output(struct dt_job *j, const struct dt_msg_output *m)
{
    if (m->rank >= j->core.ranks.nprocs)
        return;
    if (m->fd == tail_fd(j))
        dt_tail_feed(&j->core.ranks.v[m->rank].tail, (const char *)m->data.p, m->data.n);
    j->core.ops->output(j->core.ops->arg, m->rank, m->fd, m->data.p, m->data.n);
}

void dt_job_on_output_eof(struct dt_job *j, const struct dt_msg_output_eof *m)
{
    if (m->rank >= j->core.ranks.nprocs)
        return;
    j->core.ops->output_eof(j->core.ops->arg, m->rank, m->fd);
    if (m->fd == tail_fd(j)) {
        j->core.ranks.v[m->rank].tail_eof = true;
    }
}

void dt_job_on_output_quiet(struct dt_job *j, const struct dt_msg_output_quiet *m)
{
    if (m->rank < j->core.ranks.nprocs)
        j->core.ops->output_quiet(j->core.ops->arg, m->rank, m->fd);
}

static bool reads_stdin(const struct dt_job *j, const struct dt_plan_node *node)
{
    int rank = j->core.config->stdin_rank;

    return rank == DT_STDIN_ALL || (rank >= 0 && dt_u32s_find(&node->ranks, (uint32_t)rank) >= 0);
}

/* Once to each host that has ranks which read it. */
static void send_stdin(struct dt_job *j, uint8_t type, const void *msg)
{
    for (size_t i = 0; i < j->core.plan.nnodes; i++) {
        const struct dt_plan_node *node = &j->core.plan.nodes[i];

        if (reads_stdin(j, node) && j->core.links.v[node->host])
            dt_hostlink_send(j->core.links.v[node->host], type, msg);
    }
}

void dt_job_stdin(struct dt_job *j, const void *data, size_t n)
{
    struct dt_msg_stdin m = { .generation = j->core.generation, .data = { data, n } };

    send_stdin(j, DT_MSG_STDIN, &m);
}

static void send_stdin_eof(struct dt_job *j)
{
    struct dt_msg_stdin_eof m = { .generation = j->core.generation };

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
    for (size_t i = 0; i < j->core.plan.nnodes; i++)
        j->core.links.v[j->core.plan.nodes[i].host]->stdin_taken = 0;
    if (j->core.config->stdin_rank == DT_STDIN_NONE)
        return;
    if (j->stdin_ended)
        send_stdin_eof(j);
    else
        j->core.ops->stdin_credit(j->core.ops->arg, DT_STDIN_CREDIT);
}

void dt_job_continue(struct dt_job *j)
{
    j->core.ops->stdin_credit(j->core.ops->arg, j->stdin_owed);
    j->stdin_owed = 0;
    dt_core_check(&j->core);
}

/* What every host has taken: the slowest decides. */
static uint64_t stdin_taken(const struct dt_job *j)
{
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < j->core.plan.nnodes; i++) {
        const struct dt_plan_node *node = &j->core.plan.nodes[i];
        const struct dt_hostlink *h = j->core.links.v[node->host];

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
    const struct dt_plan_node *node = dt_plan_node_on(&j->core.plan, h->host);
    uint64_t taken;

    if (m->generation != j->core.generation || !node || !reads_stdin(j, node))
        return;
    h->stdin_taken += m->bytes;
    taken = stdin_taken(j) - j->stdin_taken;
    j->stdin_taken += taken;
    if (j->core.state == DT_JOB_STARTING || j->core.state == DT_JOB_RUNNING)
        j->core.ops->stdin_credit(j->core.ops->arg, taken);
    else if (j->core.state == DT_JOB_FAILING)
        j->stdin_owed += taken;
}
