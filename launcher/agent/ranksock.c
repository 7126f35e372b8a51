#include "launcher/agent/ranksock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launcher/agent/callwatch.h"
#include "launcher/agent/commshm.h"
#include "launcher/agent/segments.h"
#include "launcher/base/mem.h"
#include "runtime/wire/hostshm.h"
#include "runtime/wire/rankmsg.h"

/* Messages read in one go: more than a socket holds, so that a drain takes all that was sent
 * before, and whoever writes without end does not keep the agent from its other work. */
enum { AT_ONCE = 1024 };

struct peer {
    uv_poll_t poll; /* data: this */
    struct dt_ranksock *owner;
    uint32_t local_rank;
    int fd;       /* our end, or -1 */
    int child_fd; /* the rank's end until it is forked, or -1 */
    bool linked;  /* it said hello */
    pid_t pid;    /* who did; only this process is listened to from then on */
    bool warned;  /* the user knows that something is wrong with it */
    bool told;    /* of its last calls */
};

struct dt_ranksock {
    const struct dt_msg_start *start;
    struct dt_ranksock_events events;
    void *arg;
    struct dt_hostshm shm;
    int shm_fd;
    struct dt_callwatch watch;
    struct dt_commshm *comms; /* the memory of other communicators */
    struct dt_segments *segments;
    int table_fd; /* sealed copy of the encoded table, or -1 */
    uint64_t table_bytes;
    bool aborted;
    bool failed;         /* a rank has said why it stopped the host */
    uint32_t open_polls; /* whose close callback has not run */
    struct peer *peers;  /* by local rank */
};

static uint32_t rank_of(const struct peer *p)
{
    return p->owner->start->ranks.v[p->local_rank];
}

/* A rank that is gone or has a full socket cannot be told anything: its exit is seen elsewhere. */
static void tell(const struct peer *p, const struct dt_rankmsg *msg, int pass)
{
    if (p->fd >= 0)
        (void)dt_rankmsg_send(p->fd, msg, pass, MSG_DONTWAIT);
}

static void send_table(const struct peer *p)
{
    struct dt_rankmsg msg = { .type = DT_RANK_TABLE };

    msg.table.bytes = p->owner->table_bytes;
    tell(p, &msg, p->owner->table_fd);
}

static void send_abort(const struct peer *p, uint64_t comm, int code, uint32_t culprit)
{
    struct dt_rankmsg msg = { .type = DT_RANK_ABORT };

    msg.abort.comm = comm;
    msg.abort.code = code;
    msg.abort.rank = culprit;
    tell(p, &msg, -1);
}

static void send_memory(struct peer *p, const struct dt_rankmsg *want)
{
    uint64_t comm = want->want_memory.comm;
    int fd = dt_commshm_want(p->owner->comms, p->local_rank, comm, want->want_memory.members,
                             want->want_memory.size);
    struct dt_rankmsg msg = { .type = DT_RANK_MEMORY };

    msg.memory.comm = comm;
    msg.memory.error = fd < 0 ? errno : 0;
    tell(p, &msg, fd);
    if (fd >= 0)
        close(fd);
}

/* Only ranks that share a communicator may: so no more is kept than communicators live. */
static void send_segment(struct peer *p, const struct dt_rankmsg *want)
{
    const struct dt_segments_wanted wanted = { want->want_segment.comm, want->want_segment.call,
                                               want->want_segment.bytes,
                                               want->want_segment.members };
    struct dt_rankmsg msg = { .type = DT_RANK_SEGMENT };
    int fd = -1;

    errno = EINVAL;
    if (dt_commshm_shares(p->owner->comms, p->local_rank, wanted.comm, wanted.members))
        fd = dt_segments_want(p->owner->segments, p->local_rank, &wanted, &msg.segment.number);
    msg.segment.comm = wanted.comm;
    msg.segment.error = fd < 0 ? errno : 0;
    tell(p, &msg, fd);
    if (fd >= 0)
        close(fd);
}

static void send_welcome(const struct peer *p)
{
    const struct dt_msg_start *start = p->owner->start;
    struct dt_rankmsg msg = { .type = DT_RANK_WELCOME };

    msg.welcome.generation = start->generation;
    msg.welcome.rank = rank_of(p);
    msg.welcome.size = start->np;
    msg.welcome.local_rank = p->local_rank;
    msg.welcome.local_size = start->ranks.n;
    msg.welcome.node_rank = start->node_rank;
    msg.welcome.nodes = start->nodes;
    memcpy(msg.welcome.secret, start->secret, sizeof msg.welcome.secret);
    tell(p, &msg, p->owner->shm_fd);
}

/* Once for each rank: whatever writes nonsense may write more of it. */
static void warn(struct peer *p, const char *what)
{
    if (p->warned)
        return;
    p->warned = true;
    char *text = dt_xasprintf("rank %u (%s): %s", rank_of(p), p->owner->start->host, what);

    p->owner->events.log(p->owner->arg, text);
    free(text);
}

static void refuse(const struct peer *p, bool version, const char *why)
{
    struct dt_rankmsg msg = { .type = DT_RANK_REFUSED };

    msg.refused.version = version;
    snprintf(msg.refused.text, sizeof msg.refused.text, "%s", why);
    tell(p, &msg, -1);
}

/* What has stopped the job, to one who came late. */
static void send_stop(const struct peer *p)
{
    uint32_t culprit;
    int code = dt_hostshm_stopped(&p->owner->shm, &culprit);

    send_abort(p, 0, code, culprit);
}

static void on_hello(struct peer *p, const struct dt_rankmsg *msg, pid_t pid)
{
    char why[DT_RANK_REFUSED_TEXT];

    if (msg->hello.protocol != DT_RANK_PROTOCOL) {
        snprintf(why, sizeof why,
                 "the program's libdtrun speaks protocol %u, this dtrun-agent %u: run it with the "
                 "dtrun it was built with, or link it again",
                 msg->hello.protocol, (unsigned)DT_RANK_PROTOCOL);
        refuse(p, true, why);
    } else if (p->linked) {
        snprintf(why, sizeof why, "process %d of this rank has called dt_init already",
                 (int)p->pid);
        warn(p, "a second process of this rank called dt_init and was refused");
        refuse(p, false, why);
    } else if (msg->hello.rank != rank_of(p) ||
               msg->hello.generation != p->owner->start->generation) {
        snprintf(why, sizeof why,
                 "the environment says rank %u of generation %u, but this process is rank %u of "
                 "generation %u: DTRUN_RANK or DTRUN_GENERATION was changed on the way",
                 msg->hello.rank, msg->hello.generation, rank_of(p), p->owner->start->generation);
        refuse(p, false, why);
    } else {
        p->linked = true;
        p->pid = pid;
        send_welcome(p);
        if (p->owner->table_fd >= 0)
            send_table(p);
        if (p->owner->aborted)
            send_stop(p);
        p->owner->events.hello(p->owner->arg, rank_of(p), msg->hello.port);
    }
}

/* Blames the one who tells where a rank is named that there is not. */
static void pass_failure(struct dt_ranksock *s, uint64_t comm, uint32_t culprit, uint32_t teller,
                         int code, const char *text)
{
    s->events.failed(s->arg, comm, culprit < s->start->np ? culprit : teller, code, text);
}

static bool is_code(int code)
{
    return code < 0 && code >= DT_RANK_CODE_MIN;
}

static void on_failed(const struct peer *p, const struct dt_rankmsg *msg)
{
    struct dt_ranksock *s = p->owner;

    if (msg->failed.comm == 0)
        s->failed = true;
    else
        dt_commshm_told(s->comms, msg->failed.comm);
    pass_failure(s, msg->failed.comm, msg->failed.rank, rank_of(p), msg->failed.code,
                 msg->failed.text);
}

static void on_last_calls(struct peer *p, const struct dt_rankmsg *msg)
{
    union dt_msg m;

    if (p->told ||
        dt_msg_decode(DT_MSG_LAST_CALLS, msg->last_calls.payload, msg->last_calls.bytes, &m) < 0) {
        warn(p, "told of its last calls twice, or in a way that is none; it was ignored");
        return;
    }
    p->told = true;
    m.last_calls.rank = rank_of(p);
    m.last_calls.generation = p->owner->start->generation;
    p->owner->events.last_calls(p->owner->arg, &m.last_calls);
    dt_msg_free(DT_MSG_LAST_CALLS, &m);
}

static void on_message(struct peer *p, const struct dt_rankmsg *msg, pid_t pid)
{
    struct dt_ranksock *s = p->owner;

    if (msg->type == DT_RANK_HELLO) {
        on_hello(p, msg, pid);
    } else if (!p->linked || pid != p->pid) {
        warn(p, "a process that is not the rank's own wrote to its socket; it was ignored");
    } else if (msg->type == DT_RANK_COMMIT) {
        s->events.commit(s->arg, msg->commit.step, msg->commit.restored != 0);
    } else if (msg->type == DT_RANK_NOTE) {
        s->events.log(s->arg, msg->note.text);
    } else if (msg->type == DT_RANK_FAILED && is_code(msg->failed.code)) {
        on_failed(p, msg);
    } else if (msg->type == DT_RANK_WANT_MEMORY) {
        send_memory(p, msg);
    } else if (msg->type == DT_RANK_LIMIT) {
        s->events.limit(s->arg, msg->limit.ms);
    } else if (msg->type == DT_RANK_LAST_CALLS) {
        on_last_calls(p, msg);
    } else if (msg->type == DT_RANK_FREE_MEMORY) {
        if (dt_commshm_done(s->comms, p->local_rank, msg->free_memory.comm))
            dt_segments_forget(s->segments, msg->free_memory.comm);
    } else if (msg->type == DT_RANK_WANT_SEGMENT) {
        send_segment(p, msg);
    } else if (msg->type == DT_RANK_STEP) {
        atomic_store(&s->shm.ranks[p->local_rank].watch_step, DT_HOSTSHM_NO_STEP);
        s->events.step(s->arg, rank_of(p), msg->step.step);
    } else {
        warn(p, "sent what only an agent sends; it was ignored");
    }
}

static void stop_reading(struct peer *p)
{
    if (!uv_is_closing((uv_handle_t *)&p->poll))
        uv_poll_stop(&p->poll);
}

static void drain(struct dt_ranksock *s, uint32_t local_rank)
{
    struct peer *p = &s->peers[local_rank];
    struct dt_rankmsg msg;
    struct dt_rankmsg_from from;
    int r;

    for (int i = 0; p->fd >= 0 && i < AT_ONCE; i++) {
        r = dt_rankmsg_recv(p->fd, &msg, &from, MSG_DONTWAIT);
        if (r > 0) {
            if (from.fd >= 0)
                close(from.fd);
            on_message(p, &msg, from.pid);
        } else if (r < 0 && (errno == EPROTO || errno == EMFILE)) {
            warn(p, "wrote something to its socket that is no message; it was ignored");
        } else {
            /* The end of the stream: every process that held the rank's end has closed it. */
            if (r == 0 || errno != EAGAIN)
                stop_reading(p);
            return;
        }
    }
}

/* Who died, the launcher learns otherwise. */
static void pass_on(struct dt_ranksock *s, uint64_t comm, const struct dt_hostshm *shm)
{
    char text[DT_HOSTSHM_WHY];
    uint32_t culprit;
    int code = dt_hostshm_stopped(shm, &culprit);

    if (code != DT_HOSTSHM_PEER_DIED && is_code(code))
        pass_failure(s, comm, culprit, s->start->ranks.v[0], code, dt_hostshm_copy_why(shm, text));
}

/* A rank never waits for room in its socket, so what it says there when it fails may be missing. */
static void pass_on_untold(struct dt_ranksock *s)
{
    const struct dt_hostshm *shm;
    uint64_t comm;

    if (!s->aborted && !s->failed && dt_hostshm_stopped(&s->shm, NULL)) {
        s->failed = true;
        pass_on(s, 0, &s->shm);
    }
    while ((shm = dt_commshm_untold(s->comms, &comm)))
        pass_on(s, comm, shm);
}

void dt_ranksock_drain(struct dt_ranksock *s, uint32_t local_rank)
{
    drain(s, local_rank);
    if (s->aborted || s->failed || !dt_hostshm_stopped(&s->shm, NULL))
        return;
    for (uint32_t i = 0; i < s->start->ranks.n; i++)
        drain(s, i);
    pass_on_untold(s);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct peer *p = poll->data;

    (void)status;
    (void)events;
    drain(p->owner, p->local_rank);
}

/* Memory goes with the last close callback: libuv touches its handles until then. */
static void on_closed(uv_handle_t *handle)
{
    struct dt_ranksock *s = ((struct peer *)handle->data)->owner;

    if (--s->open_polls == 0) {
        free(s->peers);
        free(s);
    }
}

static int open_peer(uv_loop_t *loop, struct dt_ranksock *s, uint32_t local_rank)
{
    struct peer *p = &s->peers[local_rank];
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
    return uv_poll_start(&p->poll, UV_READABLE, on_readable);
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
        s->peers[i] = (struct peer){ .owner = s, .fd = -1, .child_fd = -1 };
    s->shm_fd = dt_hostshm_create(&s->shm, start->generation, start->ranks.n, 0);
    if (s->shm_fd < 0)
        r = -errno;
    for (uint32_t i = 0; i < start->ranks.n && r == 0; i++)
        r = open_peer(loop, s, i);
    if (r == 0)
        return s;
    dt_ranksock_destroy(s);
    dt_error_set(err, "cannot prepare %u rank%s: %s%s", start->ranks.n,
                 start->ranks.n == 1 ? "" : "s", strerror(-r),
                 r == -EMFILE  ? "; the limit of open files (ulimit -n) is too low"
                 : r == -EFBIG ? "; the limit of a file's size (ulimit -f) is too low"
                               : "");
    return NULL;
}

int dt_ranksock_child_fd(const struct dt_ranksock *s, uint32_t local_rank)
{
    return s->peers[local_rank].child_fd;
}

void dt_ranksock_forked(struct dt_ranksock *s, uint32_t local_rank)
{
    struct peer *p = &s->peers[local_rank];

    if (p->child_fd >= 0)
        close(p->child_fd);
    p->child_fd = -1;
}

/* The table as a memory file that nobody can change any more, for all ranks of the host. */
static int table_file(const struct dt_msg_table *table, uint64_t *bytes)
{
    struct dt_put p = { 0 };
    int fd = memfd_create("dtrun-table", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    size_t done = 0;
    ssize_t n = 1;

    dt_msg_encode(&p, DT_MSG_TABLE, table);
    while (fd >= 0 && !p.failed && done < p.len && n > 0) {
        n = write(fd, p.data + done, p.len - done);
        done += n > 0 ? (size_t)n : 0;
    }
    *bytes = p.len;
    if (fd >= 0 &&
        (p.failed || done < p.len ||
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
        s->events.log(s->arg,
                      "no memory for the table of ranks; the ranks of this host cannot start");
        dt_ranksock_abort(s, 0, DT_HOSTSHM_PEER_DIED, s->start->ranks.v[0], "");
        return;
    }
    for (uint32_t i = 0; i < s->start->ranks.n; i++) {
        if (s->peers[i].linked)
            send_table(&s->peers[i]);
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
            send_abort(&s->peers[i], comm, code, culprit_rank);
    }
}

void dt_ranksock_ended(struct dt_ranksock *s, uint32_t rank, uint32_t ending)
{
    dt_hostshm_note_ending(&s->shm, rank, ending);
}

struct dt_rank_state dt_ranksock_state(const struct dt_ranksock *s, uint32_t local_rank)
{
    const struct dt_hostshm_rank *r = &s->shm.ranks[local_rank];
    uint32_t flags = atomic_load(&r->flags);

    return (struct dt_rank_state){
        .linked = s->peers[local_rank].linked,
        .finalized = (flags & DT_HOSTSHM_FINALIZED) != 0,
        .peer_lost = (flags & DT_HOSTSHM_PEER_LOST) != 0,
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

/* LIMITs are passed on before PONG goes out, which has the limits of all that were. */
void dt_ranksock_look(struct dt_ranksock *s, const struct dt_msg_list *asked,
                      struct dt_msg_pong *pong)
{
    uint64_t now = uv_hrtime();
    struct dt_msg_comm *world = dt_xcalloc(1, sizeof *world);

    for (uint32_t i = 0; i < s->start->ranks.n; i++)
        drain(s, i);
    pass_on_untold(s);
    dt_callwatch_look(&s->watch, &s->shm, now);
    dt_callwatch_tell(&s->watch, &s->shm, 0, &s->start->ranks, now, world);
    pong->comms = (struct dt_msg_list){ world, 1 };
    dt_callwatch_lower(&s->shm, &pong->limit_ms);
    dt_commshm_look(s->comms, &s->start->ranks, now, asked, pong);
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
    tell(&s->peers[local_rank], &msg, -1);
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
    s->open_polls++; /* holds the memory until every handle is asked to close */
    for (uint32_t i = 0; i < s->start->ranks.n; i++) {
        struct peer *p = &s->peers[i];

        dt_ranksock_forked(s, i);
        if (p->poll.data)
            uv_close((uv_handle_t *)&p->poll, on_closed);
        if (p->fd >= 0)
            close(p->fd);
        p->fd = -1;
    }
    if (--s->open_polls == 0) {
        free(s->peers);
        free(s);
    }
}
