#include "launcher/agent/ranklink/ranksock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launcher/agent/ranklink/rankpeer.h"
#include "launcher/base/mem.h"
#include "runtime/wire/writeall.h"

void dt_ranksock_drain(struct dt_ranksock *s, uint32_t local_rank)
{
    dt_rankpeer_drain(&s->peers[local_rank]);
    if (s->aborted || s->failed || !dt_hostshm_stopped(&s->shm, NULL))
        return;
    for (uint32_t i = 0; i < s->start->ranks.n; i++)
        dt_rankpeer_drain(&s->peers[i]);
    dt_rankpeer_report_stopped(s);
}

static void on_rank_readable(uv_poll_t *poll, int status, int events)
{
    struct dt_rankpeer *p = poll->data;

    (void)status;
    (void)events;
    if (p->owner->events.has_room(p->owner->arg)) {
        dt_rankpeer_drain(p);
    } else {
        uv_poll_stop(&p->poll);
        p->paused = true;
    }
}

void dt_ranksock_room(struct dt_ranksock *s)
{
    for (uint32_t i = 0; i < s->start->ranks.n; i++) {
        struct dt_rankpeer *p = &s->peers[i];

        if (p->paused)
            uv_poll_start(&p->poll, UV_READABLE, on_rank_readable);
        p->paused = false;
    }
}

/* Frees the memory in the last close callback, because libuv uses its handles until then. */
static void on_rank_closed(uv_handle_t *handle)
{
    struct dt_ranksock *s = ((struct dt_rankpeer *)handle->data)->owner;

    if (--s->open_polls == 0) {
        free(s->peers);
        free(s);
    }
}

static int open_peer(uv_loop_t *loop, struct dt_ranksock *s, uint32_t local_rank)
{
    struct dt_rankpeer *p = &s->peers[local_rank];
    int ends[2];
    int on = 1;

    p->owner = s;
    p->local_rank = local_rank;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    p->fd = ends[0];
    p->child_fd = ends[1];
    if (setsockopt(p->fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) < 0)
        return -errno;
    int r = uv_poll_init(loop, &p->poll, p->fd);
    if (r < 0)
        return r;
    p->poll.data = p;
    s->open_polls++;
    return uv_poll_start(&p->poll, UV_READABLE, on_rank_readable);
}

static const char *limit_of(int error)
{
    switch (error) {
    case EMFILE:
        return "; the limit of open files (ulimit -n) is too low";
    case EFBIG:
        return "; the limit of a file's size (ulimit -f) is too low";
    case ENOMEM:
        return "; the host has too little memory, or its limit (ulimit -v) is too low";
    case EPERM:
    case EACCES:
    case ENOSYS:
        return "; does a filter of system calls (seccomp) there forbid memfd_create?";
    default:
        return "";
    }
}

struct dt_ranksock *dt_ranksock_create(uv_loop_t *loop, const struct dt_msg_start *start,
                                       const struct dt_ranksock_events *events, void *arg,
                                       struct dt_error *err)
{
    struct dt_ranksock *s = dt_xcalloc(1, sizeof *s);
    int r = 0;

    *s = (struct dt_ranksock){ .start = start, .events = *events, .arg = arg, .table_fd = -1 };
    s->peers = dt_xcalloc(start->ranks.n, sizeof *s->peers);
    s->comms = dt_commshm_create(start->generation, start->np, &s->shm);
    s->segments = dt_segments_create(start->ranks.n);
    for (uint32_t i = 0; i < start->ranks.n; i++)
        s->peers[i] = (struct dt_rankpeer){ .owner = s, .fd = -1, .child_fd = -1 };
    s->shm_fd = dt_hostshm_create(&s->shm, start->generation, start->ranks.n, 0);
    if (s->shm_fd < 0)
        r = -errno;
    for (uint32_t i = 0; i < start->ranks.n && r == 0; i++)
        r = open_peer(loop, s, i);
    if (r == 0)
        return s;
    dt_ranksock_destroy(s);
    dt_error_set(err, "cannot prepare %u rank%s: %s%s", start->ranks.n,
                 start->ranks.n == 1 ? "" : "s", strerror(-r), limit_of(-r));
    return NULL;
}

int dt_ranksock_child_fd(const struct dt_ranksock *s, uint32_t local_rank)
{
    return s->peers[local_rank].child_fd;
}

void dt_ranksock_forked(struct dt_ranksock *s, uint32_t local_rank)
{
    struct dt_rankpeer *p = &s->peers[local_rank];

    if (p->child_fd >= 0)
        close(p->child_fd);
    p->child_fd = -1;
}

/* Writes the table to a sealed memory file for all ranks of the host. */
static int table_file(const struct dt_msg_table *table, uint64_t *bytes)
{
    struct dt_put p = { 0 };
    int fd = memfd_create("dtrun-table", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    dt_msg_encode(&p, DT_MSG_TABLE, table);
    *bytes = p.len;
    if (fd >= 0 &&
        (p.failed || dt_write_all(fd, p.data, p.len) < 0 ||
         fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)) {
        close(fd);
        fd = -1;
    }
    dt_put_free(&p);
    return fd;
}

void dt_ranksock_table(struct dt_ranksock *s, const struct dt_msg_table *table)
{
    if (s->table_fd >= 0 || table->generation != s->start->generation)
        return;
    s->table_fd = table_file(table, &s->table_bytes);
    if (s->table_fd < 0) {
        dt_rankpeer_log(s, "no memory for the table of ranks; the ranks of this host cannot start",
                        false);
        dt_ranksock_abort(s, 0, DT_HOSTSHM_PEER_DIED, s->start->ranks.v[0], "");
        return;
    }
    for (uint32_t i = 0; i < s->start->ranks.n; i++) {
        if (s->peers[i].linked)
            dt_rankpeer_send_table(&s->peers[i]);
    }
}

void dt_ranksock_abort(struct dt_ranksock *s, uint64_t comm, int code, uint32_t culprit_rank,
                       const char *text)
{
    if (s->aborted)
        return;
    if (comm == 0) {
        s->aborted = true;
        dt_hostshm_stop_because(&s->shm, code, culprit_rank, text);
        code = dt_hostshm_stopped(&s->shm, &culprit_rank);
    }
    dt_commshm_stop(s->comms, comm, code, culprit_rank, text);
    for (uint32_t i = 0; i < s->start->ranks.n; i++) {
        if (s->peers[i].linked)
            dt_rankpeer_send_abort(&s->peers[i], comm, code, culprit_rank);
    }
}

void dt_ranksock_ended(struct dt_ranksock *s, uint32_t rank, uint32_t ending)
{
    dt_hostshm_note_ending(&s->shm, rank, ending);
}

void dt_ranksock_leave_by(struct dt_ranksock *s, uint64_t ns)
{
    atomic_store(&s->shm.head->leave_by_ns, ns);
}

struct dt_rank_state dt_ranksock_state(const struct dt_ranksock *s, uint32_t local_rank)
{
    const struct dt_hostshm_rank *r = &s->shm.ranks[local_rank];
    uint32_t flags = atomic_load(&r->flags);

    return (struct dt_rank_state){
        .linked = s->peers[local_rank].linked,
        .finalized = (flags & DT_HOSTSHM_FINALIZED) != 0,
        .peer_lost = (flags & DT_HOSTSHM_PEER_LOST) != 0,
        .gpu_lost = (flags & DT_HOSTSHM_GPU_LOST) != 0,
        .dumping = (flags & DT_HOSTSHM_DUMPING) != 0,
        .failed = atomic_load(&r->failed) != 0,
        .step = atomic_load(&r->step),
        .pid = s->peers[local_rank].pid,
    };
}

bool *dt_ranksock_inside(const struct dt_ranksock *s)
{
    bool *inside = dt_xcalloc(s->start->ranks.n, sizeof *inside);

    for (uint32_t i = 0; i < s->start->ranks.n; i++)
        inside[i] = dt_callwatch_is_inside(&s->shm.ranks[i]);
    dt_commshm_inside(s->comms, &s->start->ranks, inside);
    return inside;
}

/* LIMIT messages go out before the PONG that includes those limits. */
void dt_ranksock_look(struct dt_ranksock *s, const struct dt_msg_list *asked,
                      struct dt_msg_pong *pong)
{
    uint64_t now = uv_hrtime();
    struct dt_msg_comm *world = dt_xcalloc(1, sizeof *world);

    for (uint32_t i = 0; i < s->start->ranks.n; i++)
        dt_rankpeer_drain(&s->peers[i]);
    dt_rankpeer_report_stopped(s);
    dt_callwatch_look(&s->watch, &s->shm, now);
    dt_callwatch_report(&s->watch, &s->shm, 0, &s->start->ranks, now, world);
    pong->comms = (struct dt_msg_list){ world, 1 };
    dt_callwatch_lower(&s->shm, &pong->limit_ms);
    dt_commshm_look(s->comms, &s->start->ranks, now, asked, pong);
    s->reported_limit_ms = pong->limit_ms;
}

void dt_ranksock_reset_waits(struct dt_ranksock *s)
{
    dt_callwatch_reset(&s->watch);
    dt_commshm_reset_waits(s->comms);
}

void dt_ranksock_watch_step(struct dt_ranksock *s, uint32_t local_rank, int64_t step)
{
    atomic_store(&s->shm.ranks[local_rank].watch_step, step);
}

void dt_ranksock_go(struct dt_ranksock *s, uint32_t local_rank, int exit_code)
{
    struct dt_rankmsg msg = { .type = DT_RANK_GO };

    msg.go.exit_code = exit_code;
    dt_rankpeer_send(&s->peers[local_rank], &msg, -1);
}

void dt_ranksock_destroy(struct dt_ranksock *s)
{
    if (!s)
        return;
    dt_callwatch_reset(&s->watch);
    dt_commshm_destroy(s->comms);
    dt_segments_destroy(s->segments);
    dt_hostshm_unmap(&s->shm);
    if (s->shm_fd >= 0)
        close(s->shm_fd);
    if (s->table_fd >= 0)
        close(s->table_fd);
    s->open_polls++; /* keeps the memory until every handle is being closed */
    for (uint32_t i = 0; i < s->start->ranks.n; i++) {
        struct dt_rankpeer *p = &s->peers[i];

        dt_ranksock_forked(s, i);
        if (p->poll.data)
            uv_close((uv_handle_t *)&p->poll, on_rank_closed);
        if (p->fd >= 0)
            close(p->fd);
        p->fd = -1;
    }
    if (--s->open_polls == 0) {
        free(s->peers);
        free(s);
    }
}
