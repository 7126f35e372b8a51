#include "launcher/agent/ranklink/rankpeer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launcher/base/clock.h"
#include "launcher/base/mem.h"

enum {
    /* Messages read in one go. More than a socket holds, so that a drain reads everything sent
     * before. Limited, so that a rank that writes without end does not keep the agent from its
     * other work. */
    MESSAGES_MAX = 1024,
};

static uint32_t rank_of(const struct dt_rankpeer *p)
{
    return p->owner->start->ranks.v[p->local_rank];
}

void dt_rankpeer_log(const struct dt_ranksock *s, const char *text, bool detail)
{
    const struct dt_msg_log m = { .text = (char *)(uintptr_t)text, .detail = detail };

    s->events.send(s->arg, DT_MSG_LOG, &m);
}

/* Warns once for each rank, because a rank that writes nonsense may write a lot of it. */
static void warn_once(struct dt_rankpeer *p, const char *what)
{
    if (p->warned)
        return;
    p->warned = true;
    char *text = dt_xasprintf("rank %u (%s): %s", rank_of(p), p->owner->start->host, what);

    dt_rankpeer_log(p->owner, text, false);
    free(text);
}

/* Whether a message that could not be sent for this reason may be dropped. */
static bool may_drop(int error)
{
    return error == EAGAIN || error == EPIPE || error == ECONNRESET || error == ENOTCONN;
}

void dt_rankpeer_send(struct dt_rankpeer *p, const struct dt_rankmsg *msg, int pass)
{
    char why[128];

    if (p->fd < 0 || dt_rankmsg_send(p->fd, msg, pass, MSG_DONTWAIT) == 0 || may_drop(errno))
        return;
    snprintf(why, sizeof why, "a message for it cannot be sent: %s", strerror(errno));
    warn_once(p, why);
    shutdown(p->fd, SHUT_WR);
}

void dt_rankpeer_send_table(struct dt_rankpeer *p)
{
    struct dt_rankmsg msg = { .type = DT_RANK_TABLE };

    msg.table.bytes = p->owner->table_bytes;
    dt_rankpeer_send(p, &msg, p->owner->table_fd);
}

void dt_rankpeer_send_abort(struct dt_rankpeer *p, uint64_t comm, int code, uint32_t culprit)
{
    struct dt_rankmsg msg = { .type = DT_RANK_ABORT };

    msg.abort.comm = comm;
    msg.abort.code = code;
    msg.abort.rank = culprit;
    dt_rankpeer_send(p, &msg, -1);
}

static void send_memory(struct dt_rankpeer *p, const struct dt_rankmsg *want)
{
    uint64_t comm = want->want_memory.comm;
    int fd = dt_commshm_want(p->owner->comms, p->local_rank, comm, want->want_memory.members,
                             want->want_memory.size);
    struct dt_rankmsg msg = { .type = DT_RANK_MEMORY };

    msg.memory.comm = comm;
    msg.memory.error = fd < 0 ? errno : 0;
    dt_rankpeer_send(p, &msg, fd);
    if (fd >= 0)
        close(fd);
}

/* Only ranks that share a communicator may ask, so no more segments are kept than communicators
 * exist. */
static void send_segment(struct dt_rankpeer *p, const struct dt_rankmsg *want,
                         const struct dt_rankmsg_from *from)
{
    const struct dt_segments_wanted wanted = {
        .comm = want->want_segment.comm,
        .call = want->want_segment.call,
        .bytes = want->want_segment.bytes,
        .members =
            want->want_segment.giver ? want->want_segment.takers : want->want_segment.members,
        .giver = want->want_segment.giver,
    };
    struct dt_rankmsg msg = { .type = DT_RANK_SEGMENT, .segment.error = EINVAL };
    struct dt_segments *segments = p->owner->segments;
    int fd = -1;

    msg.segment.comm = wanted.comm;
    if (!dt_commshm_shares(p->owner->comms, p->local_rank, wanted.comm,
                           want->want_segment.members)) {
        dt_rankpeer_send(p, &msg, -1);
        return;
    }
    if (from->lost) {
        msg.segment.error = EMFILE;
    } else if (from->fd >= 0) {
        msg.segment.error =
            dt_segments_give(segments, p->local_rank, &wanted, from->fd) ? errno : 0;
    } else {
        fd = dt_segments_want(segments, p->local_rank, &wanted, &msg.segment.number);
        msg.segment.error = fd < 0 ? errno : 0;
    }
    dt_rankpeer_send(p, &msg, fd);
    if (fd >= 0)
        close(fd);
}

static void send_welcome(struct dt_rankpeer *p)
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
    dt_rankpeer_send(p, &msg, p->owner->shm_fd);
}

static void refuse_rank(struct dt_rankpeer *p, bool version, const char *why)
{
    struct dt_rankmsg msg = { .type = DT_RANK_REFUSED };

    msg.refused.version = version;
    snprintf(msg.refused.text, sizeof msg.refused.text, "%s", why);
    dt_rankpeer_send(p, &msg, -1);
}

/* Tells a rank that calls dt_init late what has stopped the job. */
static void send_stop(struct dt_rankpeer *p)
{
    uint32_t culprit;
    int code = dt_hostshm_stopped(&p->owner->shm, &culprit);

    dt_rankpeer_send_abort(p, 0, code, culprit);
}

static void report_hello(const struct dt_rankpeer *p, uint16_t port)
{
    const struct dt_msg_rank_hello m = { p->owner->start->generation, rank_of(p), port };

    p->owner->events.send(p->owner->arg, DT_MSG_RANK_HELLO, &m);
}

static void on_hello(struct dt_rankpeer *p, const struct dt_rankmsg *msg, pid_t pid)
{
    char why[DT_RANK_REFUSED_TEXT];

    if (msg->hello.protocol != DT_RANK_PROTOCOL) {
        snprintf(why, sizeof why,
                 "the program's libdtrun speaks protocol %u, this dtrun-agent %u: run it with the "
                 "dtrun it was built with, or link it again",
                 msg->hello.protocol, (unsigned)DT_RANK_PROTOCOL);
        refuse_rank(p, true, why);
    } else if (p->linked) {
        snprintf(why, sizeof why, "process %d of this rank has called dt_init already",
                 (int)p->pid);
        refuse_rank(p, false, why);
        snprintf(why, sizeof why,
                 "process %d of this rank called dt_init and was refused: process %d had called it "
                 "before",
                 (int)pid, (int)p->pid);
        warn_once(p, why);
    } else if (msg->hello.rank != rank_of(p) ||
               msg->hello.generation != p->owner->start->generation) {
        snprintf(why, sizeof why,
                 "the environment says rank %u of generation %u, but this process is rank %u of "
                 "generation %u: DTRUN_RANK or DTRUN_GENERATION was changed between dtrun and the "
                 "program",
                 msg->hello.rank, msg->hello.generation, rank_of(p), p->owner->start->generation);
        refuse_rank(p, false, why);
    } else {
        p->linked = true;
        p->pid = pid;
        send_welcome(p);
        if (p->owner->table_fd >= 0)
            dt_rankpeer_send_table(p);
        if (p->owner->aborted)
            send_stop(p);
        report_hello(p, msg->hello.port);
    }
}

/* Blames the sender if the culprit is not a rank of the job. */
static void report_failure(struct dt_ranksock *s, uint64_t comm, uint32_t culprit, uint32_t sender,
                           int code, const char *text)
{
    const struct dt_msg_failed m = {
        .generation = s->start->generation,
        .comm = comm,
        .rank = culprit < s->start->np ? culprit : sender,
        .code = code,
        .text = (char *)(uintptr_t)text,
    };

    s->events.send(s->arg, DT_MSG_FAILED, &m);
}

static bool is_code(int code)
{
    return code < 0 && code >= DT_RANK_CODE_MIN;
}

/* Returns whether this is the first report for the communicator. Only the first reason counts:
 * later ones repeat it, or are wrong. */
static bool claim_report(struct dt_ranksock *s, uint64_t comm)
{
    bool known = s->failed;

    if (comm)
        return dt_commshm_report_once(s->comms, comm);
    s->failed = true;
    return !known;
}

static void on_failed(const struct dt_rankpeer *p, const struct dt_rankmsg *msg)
{
    if (claim_report(p->owner, msg->failed.comm))
        report_failure(p->owner, msg->failed.comm, msg->failed.rank, rank_of(p), msg->failed.code,
                       msg->failed.text);
}

static void on_note(struct dt_rankpeer *p, const struct dt_rankmsg *msg)
{
    const struct dt_ranksock *s = p->owner;

    if (msg->note.detail) {
        if (dt_ratelimit_take(&p->details, dt_now_ns()))
            dt_rankpeer_log(s, msg->note.text, true);
    } else if (dt_ratelimit_take(&p->notes, dt_now_ns())) {
        dt_rankpeer_log(s, msg->note.text, false);
    } else {
        warn_once(p, "has sent so many notes that from now on only one a minute is shown");
    }
}

static void on_last_calls(struct dt_rankpeer *p, const struct dt_rankmsg *msg)
{
    union dt_msg m;

    if (p->sent_last_calls ||
        dt_msg_decode(DT_MSG_LAST_CALLS, msg->last_calls.payload, msg->last_calls.bytes, &m) < 0) {
        warn_once(p, "reported its last calls twice, or in a malformed message; it was ignored");
        return;
    }
    p->sent_last_calls = true;
    m.last_calls.rank = rank_of(p);
    m.last_calls.generation = p->owner->start->generation;
    p->owner->events.send(p->owner->arg, DT_MSG_LAST_CALLS, &m);
    dt_msg_free(DT_MSG_LAST_CALLS, &m);
}

/* Ranks may set a limit for each call. The launcher needs only the lowest. */
static void on_limit(struct dt_ranksock *s, uint32_t ms)
{
    const struct dt_msg_limit m = { s->start->generation,
                                    dt_hostshm_lesser_limit(s->reported_limit_ms, ms) };

    if (m.ms == s->reported_limit_ms)
        return;
    s->reported_limit_ms = m.ms;
    s->events.send(s->arg, DT_MSG_LIMIT, &m);
}

static void on_commit(const struct dt_ranksock *s, const struct dt_rankmsg *msg)
{
    const struct dt_msg_commit m = { s->start->generation, msg->commit.step, msg->commit.kind };

    s->events.send(s->arg, DT_MSG_COMMIT, &m);
}

/* gVisor gives the sending thread's ID instead of the process's, and 0 if it has ended. */
static bool is_its_process(const struct dt_rankpeer *p, pid_t sender)
{
    char task[64];

    if (sender == p->pid || sender == 0)
        return true;
    snprintf(task, sizeof task, "/proc/%d/task/%d", (int)p->pid, (int)sender);
    return access(task, F_OK) == 0;
}

static void on_rank_message(struct dt_rankpeer *p, const struct dt_rankmsg *msg,
                            const struct dt_rankmsg_from *from)
{
    struct dt_ranksock *s = p->owner;

    if (msg->type == DT_RANK_HELLO) {
        on_hello(p, msg, from->pid);
    } else if (!p->linked || !is_its_process(p, from->pid)) {
        warn_once(p, "a process that is not the rank's own wrote to its socket; it was ignored");
    } else if (msg->type == DT_RANK_COMMIT && rank_of(p) == 0) {
        on_commit(s, msg);
    } else if (msg->type == DT_RANK_NOTE) {
        on_note(p, msg);
    } else if (msg->type == DT_RANK_FAILED && is_code(msg->failed.code)) {
        on_failed(p, msg);
    } else if (msg->type == DT_RANK_WANT_MEMORY) {
        send_memory(p, msg);
    } else if (msg->type == DT_RANK_LIMIT) {
        on_limit(s, msg->limit.ms);
    } else if (msg->type == DT_RANK_LAST_CALLS) {
        on_last_calls(p, msg);
    } else if (msg->type == DT_RANK_FREE_MEMORY) {
        if (dt_commshm_done(s->comms, p->local_rank, msg->free_memory.comm))
            dt_segments_forget(s->segments, msg->free_memory.comm);
    } else if (msg->type == DT_RANK_WANT_SEGMENT) {
        send_segment(p, msg, from);
    } else if (msg->type == DT_RANK_STEP) {
        atomic_store(&s->shm.ranks[p->local_rank].watch_step, DT_HOSTSHM_NO_STEP);
        s->events.step(s->arg, p->local_rank, msg->step.step);
    } else {
        warn_once(p, "sent a message that it may not send; it was ignored");
    }
}

static void stop_reading(struct dt_rankpeer *p)
{
    p->paused = false;
    if (!uv_is_closing((uv_handle_t *)&p->poll))
        uv_poll_stop(&p->poll);
}

void dt_rankpeer_drain(struct dt_rankpeer *p)
{
    struct dt_rankmsg msg;
    struct dt_rankmsg_from from;
    int r;

    for (int i = 0; p->fd >= 0 && i < MESSAGES_MAX; i++) {
        r = dt_rankmsg_recv(p->fd, &msg, &from, MSG_DONTWAIT);
        if (r > 0) {
            on_rank_message(p, &msg, &from);
            if (from.fd >= 0)
                close(from.fd);
        } else if (r < 0 && errno == EPROTO) {
            warn_once(p, "wrote something to its socket that is not a message; it was ignored");
        } else {
            /* EOF: every process that held the rank's end has closed it. */
            if (r == 0 || errno != EAGAIN)
                stop_reading(p);
            return;
        }
    }
}

/* Does not report deaths: EXIT tells the launcher of them. */
static void report_stop(struct dt_ranksock *s, uint64_t comm, const struct dt_hostshm *shm)
{
    char text[DT_HOSTSHM_WHY];
    uint32_t culprit;
    int code = dt_hostshm_stopped(shm, &culprit);

    if (code != DT_HOSTSHM_PEER_DIED && is_code(code))
        report_failure(s, comm, culprit, s->start->ranks.v[0], code,
                       dt_hostshm_copy_why(shm, text));
}

void dt_rankpeer_report_stopped(struct dt_ranksock *s)
{
    const struct dt_hostshm *shm;
    uint64_t comm;

    if (!s->aborted && !s->failed && dt_hostshm_stopped(&s->shm, NULL)) {
        s->failed = true;
        report_stop(s, 0, &s->shm);
    }
    while ((shm = dt_commshm_next_unreported(s->comms, &comm)))
        report_stop(s, comm, shm);
}
