#include "launcher/agent/mpi/pmisock.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launcher/agent/mpi/pmi.h"
#include "launcher/base/mem.h"
#include "launcher/place/mpimap.h"

struct peer {
    struct dt_pmisock *owner;
    uint32_t local_rank;
    int fd;         /* -1: closed */
    int child_fd;   /* -1 after the fork */
    uv_poll_t poll; /* open exactly as long as fd */
};

struct dt_pmisock {
    struct dt_pmi *pmi;
    const struct dt_msg_start *start;
    struct dt_pmisock_events events;
    void *arg;
    struct peer *peers; /* by local rank */
    uint32_t users;     /* of this memory: the owner, and libuv for each poll */
    bool refused_spawn; /* the refusal was reported */
};

static void say(struct dt_pmisock *s, uint32_t local_rank, const char *what)
{
    char *text =
        dt_xasprintf("rank %u (%s): %s", s->start->ranks.v[local_rank], s->start->host, what);

    s->events.log(s->arg, text);
    free(text);
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void release(struct dt_pmisock *s)
{
    if (--s->users > 0)
        return;
    dt_pmi_destroy(s->pmi);
    free(s->peers);
    free(s);
}

static void on_poll_closed(uv_handle_t *handle)
{
    release(((struct peer *)handle->data)->owner);
}

/* uv_close makes libuv forget the descriptor's number. After close() that number may belong to
 * another connection, which the loop would then never watch again. */
static void hang_up(struct peer *p)
{
    if (p->fd < 0)
        return;
    uv_close((uv_handle_t *)&p->poll, on_poll_closed);
    close_fd(&p->fd);
}

/* ---- what the server does ---- */

/* A rank has only one request in progress, so only a rank that reads no answers can fill its
 * socket. */
static void on_reply(void *arg, uint32_t local_rank, const char *line, size_t n)
{
    struct dt_pmisock *s = arg;
    struct peer *p = &s->peers[local_rank];

    if (p->fd >= 0 && send(p->fd, line, n, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)n)
        hang_up(p);
}

static void on_fence(void *arg, const char *data, size_t n)
{
    struct dt_pmisock *s = arg;

    s->events.fence(s->arg, data, n);
}

static void on_abort(void *arg, uint32_t local_rank, int exit_code)
{
    struct dt_pmisock *s = arg;

    s->events.abort(s->arg, local_rank, exit_code);
}

static void on_state(void *arg, uint32_t local_rank, bool inside)
{
    struct dt_pmisock *s = arg;

    s->events.state(s->arg, local_rank, inside);
}

static void on_spawn_refused(void *arg, uint32_t local_rank)
{
    struct dt_pmisock *s = arg;

    if (!s->refused_spawn)
        say(s, local_rank,
            "MPI_Comm_spawn fails: dtrun starts all processes of a job at once; "
            "see dtrun-frameworks(7)");
    s->refused_spawn = true;
}

static const struct dt_pmi_ops dti_pmi_ops = { .reply = on_reply,
                                               .fence = on_fence,
                                               .abort = on_abort,
                                               .state = on_state,
                                               .spawn_refused = on_spawn_refused };

/* ---- what ranks send ---- */

static void on_pmi_readable(uv_poll_t *poll, int status, int events)
{
    struct peer *p = poll->data;
    char bytes[4096];
    ssize_t n = recv(p->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    const char *wrong;

    (void)status; /* recv reports the error */
    (void)events;
    if (n < 0)
        return;
    wrong = n ? dt_pmi_input(p->owner->pmi, p->local_rank, bytes, (size_t)n) : NULL;
    if (wrong) {
        char *text = dt_xasprintf("what it writes to PMI_FD is not PMI-1: %s", wrong);

        say(p->owner, p->local_rank, text);
        free(text);
    }
    if (wrong || n == 0)
        hang_up(p);
}

/* ---- opening and closing ---- */

static int open_peer(uv_loop_t *loop, struct peer *p)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -1;
    p->fd = ends[0];
    p->child_fd = ends[1];
    uv_poll_init(loop, &p->poll, p->fd);
    p->poll.data = p;
    p->owner->users++;
    uv_poll_start(&p->poll, UV_READABLE, on_pmi_readable);
    return 0;
}

static struct dt_pmi *open_server(struct dt_pmisock *s)
{
    const struct dt_msg_start *start = s->start;
    char *name = dt_xasprintf("%s.%u", start->job_id, start->generation);
    char *mapping = dt_mpimap_text(&start->mpi_map);
    const struct dt_pmi_job job = {
        .name = name, .mapping = mapping, .universe = start->universe, .local_ranks = start->ranks.n
    };
    struct dt_pmi *pmi = dt_pmi_create(&job, &dti_pmi_ops, s);

    free(name);
    free(mapping);
    return pmi;
}

struct dt_pmisock *dt_pmisock_create(uv_loop_t *loop, const struct dt_msg_start *start,
                                     const struct dt_pmisock_events *events, void *arg)
{
    struct dt_pmisock *s = dt_xcalloc(1, sizeof *s);
    uint32_t n = start->ranks.n;

    *s = (struct dt_pmisock){ .start = start, .events = *events, .arg = arg, .users = 1 };
    s->pmi = open_server(s);
    s->peers = dt_xcalloc(n, sizeof *s->peers);
    for (uint32_t i = 0; i < n; i++)
        s->peers[i] = (struct peer){ .owner = s, .local_rank = i, .fd = -1, .child_fd = -1 };
    for (uint32_t i = 0; i < n; i++) {
        if (open_peer(loop, &s->peers[i]) < 0) {
            int error = errno;

            dt_pmisock_destroy(s);
            errno = error;
            return NULL;
        }
    }
    return s;
}

int dt_pmisock_child_fd(const struct dt_pmisock *s, uint32_t local_rank)
{
    return s->peers[local_rank].child_fd;
}

void dt_pmisock_forked(struct dt_pmisock *s, uint32_t local_rank)
{
    close_fd(&s->peers[local_rank].child_fd);
}

bool dt_pmisock_fenced(struct dt_pmisock *s, const char *data, size_t n)
{
    return dt_pmi_fenced(s->pmi, data, n);
}

void dt_pmisock_destroy(struct dt_pmisock *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->start->ranks.n; i++) {
        hang_up(&s->peers[i]);
        close_fd(&s->peers[i].child_fd);
    }
    release(s);
}
