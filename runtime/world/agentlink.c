#include "runtime/world/agentlink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/wire/env.h"
#include "runtime/wire/frame.h"
#include "runtime/wire/highfd.h"
#include "runtime/world/parentrank.h"

/* A question that a thread has asked. It is on that thread's stack. */
struct dt_reply {
    struct dt_reply *next;
    uint8_t type;  /* of the message that answers it */
    uint64_t comm; /* the communicator that it is about; 0: none */
    bool here;
    struct dt_rankmsg msg;
    int fd; /* the descriptor that came with the answer, or -1 */
};

static bool is_agent_socket(int fd, struct stat *st)
{
    struct ucred cred;
    int type = 0, domain = 0;
    socklen_t len = sizeof type, cred_len = sizeof cred;

    return fstat(fd, st) == 0 && S_ISSOCK(st->st_mode) &&
           getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_SEQPACKET &&
           getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_UNIX &&
           getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len) == 0 &&
           (cred.uid == 0 || cred.uid == getuid() || cred.uid == geteuid());
}

void dt_agentlink_none(struct dt_agentlink *l)
{
    *l = (struct dt_agentlink){ .fd = -1, .nudge = -1 };
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->moved, NULL);
}

static dt_result_t fail_no_socket(const struct dt_agentenv *env)
{
    pid_t rank = dt_parentrank_find(env->fd);

    if (rank > 0)
        return dt_fail(DT_ERR_STATE,
                       "rank %u: this process (%d) is a child of process %d, which has called "
                       "dt_init and is the rank: a program that a rank starts is not a rank; with "
                       "%s=1 in its environment it is a job of one rank",
                       env->rank, (int)getpid(), (int)rank, DT_ENV_ALONE);
    return dt_fail(
        DT_ERR_IO,
        "rank %u: descriptor %d (%s) is not the socket to dtrun-agent: either a wrapper "
        "between dtrun and the program has closed it, and must leave it open; or a "
        "program that has called dt_init, which keeps the socket to itself, has "
        "executed or started this one, which is not a rank (with %s=1 in its environment "
        "it is a job of one rank)",
        env->rank, env->fd, DT_ENV_AGENT_FD, DT_ENV_ALONE);
}

/* The kernel names no process of another PID namespace. */
static dt_result_t fail_no_lock(const struct dt_agentenv *env, int error)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    char holder[32] = "another process";

    if (error != EAGAIN && error != EACCES)
        return dt_fail_errno(DT_ERR_IO, error, "rank %u: a lock of the socket to dtrun-agent",
                             env->rank);
    if (fcntl(env->fd, F_GETLK, &lock) == 0 && lock.l_pid > 0)
        snprintf(holder, sizeof holder, "process %d", (int)lock.l_pid);
    return dt_fail(DT_ERR_STATE,
                   "rank %u: %s has called dt_init for this rank already; this is process %d",
                   env->rank, holder, (int)getpid());
}

dt_result_t dt_agentlink_open(struct dt_agentlink *l, const struct dt_agentenv *env)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    struct stat st;

    if (!is_agent_socket(env->fd, &st))
        return fail_no_socket(env);
    if (fcntl(env->fd, F_SETLK, &lock) < 0)
        return fail_no_lock(env, errno);
    l->nudge = dt_fd_high(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (l->nudge < 0 || fcntl(env->fd, F_SETFD, FD_CLOEXEC) < 0)
        return dt_fail_errno(DT_ERR_IO, errno, "rank %u: the socket to dtrun-agent", env->rank);
    l->fd = env->fd;
    l->dev = st.st_dev;
    l->ino = st.st_ino;
    return DT_OK;
}

int dt_agentlink_fd(const struct dt_agentlink *l)
{
    struct stat st;

    if (fstat(l->fd, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino)
        return l->fd;
    errno = EBADF;
    return -1;
}

void dt_agentlink_close(struct dt_agentlink *l)
{
    if (l->fd >= 0 && dt_agentlink_fd(l) >= 0)
        close(l->fd);
    if (l->nudge >= 0)
        close(l->nudge);
    l->fd = l->nudge = -1;
}

/* Waits for the next message. */
static dt_result_t receive_message(struct dt_agentlink *l, struct dt_rankmsg *msg, int *fd)
{
    struct dt_rankmsg_from from;
    int r = dt_rankmsg_recv(dt_agentlink_fd(l), msg, &from, 0);

    *fd = from.fd;
    if (r > 0 && !from.lost)
        return DT_OK;
    if (r == 0)
        return dt_fail(DT_ERR_PEER, "dtrun-agent of this host has ended");
    if (r > 0)
        errno = EMFILE;
    return dt_fail_errno(errno == EPROTO ? DT_ERR_VERSION : DT_ERR_IO, errno,
                         "the socket to dtrun-agent");
}

static dt_result_t send_with_fd(struct dt_agentlink *l, const struct dt_rankmsg *msg, int pass)
{
    if (dt_rankmsg_send(dt_agentlink_fd(l), msg, pass, 0) == 0)
        return DT_OK;
    if (errno == EPIPE || errno == ECONNRESET)
        return dt_fail(DT_ERR_PEER, "dtrun-agent of this host has ended");
    return dt_fail_errno(errno == ENOMEM ? DT_ERR_NOMEM : DT_ERR_IO, errno,
                         "the socket to dtrun-agent, descriptor %d%s", l->fd,
                         errno == EBADF ? ", which the program must leave open" : "");
}

static dt_result_t send_message(struct dt_agentlink *l, const struct dt_rankmsg *msg)
{
    return send_with_fd(l, msg, -1);
}

static dt_result_t take_welcome(const struct dt_rankmsg *m, int fd, const struct dt_agentenv *env,
                                struct dt_hostshm *shm)
{
    errno = EPROTO;
    if (m->type == DT_RANK_WELCOME && fd >= 0 && m->welcome.rank == env->rank &&
        dt_hostshm_map(shm, fd, env->generation, m->welcome.local_size, 0) == 0)
        return DT_OK;
    if (errno == ENOMEM)
        return dt_fail_errno(DT_ERR_NOMEM, errno, "rank %u: the memory that ranks share",
                             env->rank);
    return dt_fail(DT_ERR_VERSION, "rank %u: dtrun-agent's welcome cannot be understood (%s)",
                   env->rank, strerror(errno));
}

dt_result_t dt_agentlink_hello(struct dt_agentlink *l, const struct dt_agentenv *env, uint16_t port,
                               struct dt_rankmsg *welcome, struct dt_hostshm *shm)
{
    struct dt_rankmsg hello = { .type = DT_RANK_HELLO };
    dt_result_t r;
    int fd = -1;

    hello.hello.protocol = DT_RANK_PROTOCOL;
    hello.hello.rank = env->rank;
    hello.hello.generation = env->generation;
    hello.hello.port = port;
    r = send_message(l, &hello);
    if (r == DT_OK)
        r = receive_message(l, welcome, &fd);
    if (r == DT_OK && welcome->type == DT_RANK_REFUSED)
        r = dt_fail(welcome->refused.version ? DT_ERR_VERSION : DT_ERR_STATE, "rank %u: %s",
                    env->rank, welcome->refused.text);
    else if (r == DT_OK)
        r = take_welcome(welcome, fd, env, shm);
    if (fd >= 0)
        close(fd);
    return r;
}

static dt_result_t read_table(int fd, uint64_t bytes, union dt_msg *table)
{
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);
    dt_result_t r = DT_OK;
    void *p;

    if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) < 0 || bytes == 0 ||
        (uint64_t)st.st_size != bytes || bytes > DT_MESSAGE_MAX)
        return dt_fail(DT_ERR_VERSION, "dtrun-agent's table of ranks cannot be understood");
    p = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return dt_fail_errno(DT_ERR_NOMEM, errno, "the table of ranks");
    if (dt_msg_decode(DT_MSG_TABLE, p, bytes, table) < 0)
        r = errno == ENOMEM
                ? dt_fail_errno(DT_ERR_NOMEM, errno, "the table of ranks")
                : dt_fail(DT_ERR_VERSION, "dtrun-agent's table of ranks cannot be understood");
    munmap(p, bytes);
    return r;
}

static dt_result_t fail_stopped(const struct dt_hostshm *shm, const struct dt_rankmsg *msg)
{
    char ending[DT_HOSTSHM_ENDING];
    const char *why = dt_hostshm_why(shm);

    if (msg->abort.code != DT_ERR_PEER)
        return dt_fail((dt_result_t)msg->abort.code, "dt_init: %s",
                       *why ? why : dt_strerror((dt_result_t)msg->abort.code));
    if (*why)
        return dt_fail(DT_ERR_PEER, "%s before every rank had called dt_init", why);
    return dt_fail(DT_ERR_PEER, "rank %u died or left%s before every rank had called dt_init",
                   msg->abort.rank, dt_hostshm_ending_text(shm, msg->abort.rank, ending));
}

static dt_result_t fail_before_all_joined(const struct dt_hostshm *shm,
                                          const struct dt_rankmsg *msg)
{
    dt_result_t r;

    dt_hostshm_stop(shm, msg->abort.code, msg->abort.rank);
    r = fail_stopped(shm, msg);
    dt_error_details()->rank = (int)msg->abort.rank; /* -1: no rank caused it */
    return r;
}

dt_result_t dt_agentlink_table(struct dt_agentlink *l, const struct dt_hostshm *shm,
                               union dt_msg *table)
{
    struct dt_rankmsg msg;
    int fd;
    dt_result_t r = receive_message(l, &msg, &fd);

    if (r != DT_OK)
        return r;
    if (msg.type == DT_RANK_ABORT) {
        r = fail_before_all_joined(shm, &msg);
    } else if (msg.type == DT_RANK_TABLE && fd >= 0) {
        r = read_table(fd, msg.table.bytes, table);
    } else {
        r = dt_fail(DT_ERR_VERSION, "dtrun-agent sent a message of type %u where a table was due",
                    msg.type);
    }
    if (fd >= 0)
        close(fd);
    return r;
}

/* ---- reading for all threads ---- */

static uint64_t comm_of(const struct dt_rankmsg *msg)
{
    return msg->type == DT_RANK_MEMORY    ? msg->memory.comm
           : msg->type == DT_RANK_SEGMENT ? msg->segment.comm
                                          : 0;
}

static struct dt_reply *waiting_reply(struct dt_agentlink *l, const struct dt_rankmsg *msg)
{
    uint64_t comm = comm_of(msg);
    struct dt_reply *r = l->wanted;

    while (r && (r->here || r->type != msg->type || r->comm != comm))
        r = r->next;
    return r;
}

static void deliver_message(struct dt_agentlink *l, const struct dt_rankmsg *msg, int fd)
{
    struct dt_reply *r = waiting_reply(l, msg);

    if (msg->type == DT_RANK_ABORT) {
        l->over |= msg->abort.comm == 0;
        l->stop(l->arg, msg->abort.comm, msg->abort.code, msg->abort.rank);
    }
    if (r) {
        r->msg = *msg;
        r->fd = fd;
        r->here = true;
    } else if (fd >= 0) {
        close(fd);
    }
}

/* Reads all messages without waiting. The caller holds the lock. */
static void read_all_messages(struct dt_agentlink *l)
{
    struct dt_rankmsg msg;
    struct dt_rankmsg_from from;
    int r;

    while ((r = dt_rankmsg_recv(dt_agentlink_fd(l), &msg, &from, MSG_DONTWAIT)) != 0) {
        if (r < 0 && errno == EAGAIN)
            return;
        if (r < 0 && errno != EPROTO)
            break;
        if (r > 0)
            deliver_message(l, &msg, from.fd);
    }
    l->over = true;
    if (r == 0)
        l->stop(l->arg, 0, DT_ERR_PEER, UINT32_MAX);
    else
        l->lost(l->arg, errno);
}

void dt_agentlink_poll(struct dt_agentlink *l)
{
    if (l->fd < 0)
        return;
    pthread_mutex_lock(&l->lock);
    read_all_messages(l);
    if (l->wanted)
        pthread_cond_broadcast(&l->moved);
    if (l->reading)
        eventfd_write(l->nudge, 1);
    pthread_mutex_unlock(&l->lock);
}

static void sleep_until_readable(struct dt_agentlink *l)
{
    int fd = dt_agentlink_fd(l);
    struct pollfd p[2] = { { fd, POLLIN, 0 }, { l->nudge, POLLIN, 0 } };
    eventfd_t nudges;

    if (fd >= 0 && poll(p, 2, -1) > 0 && p[1].revents)
        eventfd_read(l->nudge, &nudges);
}

/* One waiting thread reads for all, and then hands this duty to the next. The caller holds the
 * lock. */
static void await_reply(struct dt_agentlink *l, const struct dt_reply *mine)
{
    while (!mine->here && !l->over) {
        if (l->reading) {
            pthread_cond_wait(&l->moved, &l->lock);
            continue;
        }
        l->reading = true;
        pthread_mutex_unlock(&l->lock);
        sleep_until_readable(l);
        pthread_mutex_lock(&l->lock);
        l->reading = false;
        read_all_messages(l);
        pthread_cond_broadcast(&l->moved);
    }
}

/* Sends a question, with the descriptor mine->fd, and waits for the answer. DT_ERR_STATE: the job
 * has been stopped, so there will be no answer; dt_last_error is unchanged. */
static dt_result_t ask_agent(struct dt_agentlink *l, const struct dt_rankmsg *question,
                             struct dt_reply *mine)
{
    struct dt_reply **at = &l->wanted;
    dt_result_t r;

    pthread_mutex_lock(&l->lock);
    mine->next = l->wanted;
    l->wanted = mine;
    r = send_with_fd(l, question, mine->fd);
    mine->fd = -1;
    if (r == DT_OK)
        await_reply(l, mine);
    else
        read_all_messages(l); /* if the socket is lost, this tells the other ranks */
    while (*at != mine)
        at = &(*at)->next;
    *at = mine->next;
    pthread_mutex_unlock(&l->lock);
    return r == DT_OK && !mine->here ? DT_ERR_STATE : r;
}

/* ---- what is said after the start ---- */

dt_result_t dt_agentlink_commit(struct dt_agentlink *l, int64_t step, uint8_t kind)
{
    struct dt_rankmsg msg = { .type = DT_RANK_COMMIT };

    if (l->fd < 0)
        return DT_OK;
    msg.commit.step = step;
    msg.commit.kind = kind;
    return send_message(l, &msg);
}

static dt_result_t send_note(struct dt_agentlink *l, bool detail, const char *text)
{
    struct dt_rankmsg msg = { .type = DT_RANK_NOTE, .note = { .detail = detail } };

    if (l->fd < 0)
        return DT_OK;
    snprintf(msg.note.text, sizeof msg.note.text, "%s", text);
    return send_message(l, &msg);
}

dt_result_t dt_agentlink_note(struct dt_agentlink *l, const char *text)
{
    return send_note(l, false, text);
}

dt_result_t dt_agentlink_detail(struct dt_agentlink *l, const char *text)
{
    return send_note(l, true, text);
}

void dt_agentlink_failed(struct dt_agentlink *l, uint64_t comm, dt_result_t code, uint32_t culprit,
                         const char *text, bool wait)
{
    struct dt_rankmsg msg = { .type = DT_RANK_FAILED };

    if (l->fd < 0)
        return;
    msg.failed.comm = comm;
    msg.failed.code = code;
    msg.failed.rank = culprit;
    snprintf(msg.failed.text, sizeof msg.failed.text, "%s", text);
    (void)dt_rankmsg_send(dt_agentlink_fd(l), &msg, -1, wait ? 0 : MSG_DONTWAIT);
}

dt_result_t dt_agentlink_limit(struct dt_agentlink *l, uint32_t ms)
{
    struct dt_rankmsg msg = { .type = DT_RANK_LIMIT };

    if (l->fd < 0)
        return DT_OK;
    msg.limit.ms = ms;
    return send_message(l, &msg);
}

/* The giver of a segment that the agent makes: the message holds giver + 1, which is then 0. */
enum { NOBODY = -1 };

static dt_result_t map_memory(const struct dt_reply *memory, uint32_t members, uint32_t size,
                              uint32_t generation, struct dt_hostshm *shm)
{
    int error = memory->msg.memory.error;

    if (error)
        return dt_fail_errno(DT_ERR_NOMEM, error, "dtrun-agent has no memory for a communicator%s",
                             error == ENOSPC ? " (there are too many; free some)" : "");
    if (memory->fd < 0)
        return dt_fail_errno(DT_ERR_IO, EMFILE, "the memory of a communicator");
    if (dt_hostshm_map(shm, memory->fd, generation, members, size) == 0)
        return DT_OK;
    return dt_fail_errno(errno == EPROTO ? DT_ERR_INTERNAL : DT_ERR_NOMEM, errno,
                         "the memory of a communicator");
}

dt_result_t dt_agentlink_want_memory(struct dt_agentlink *l, uint64_t comm, uint32_t members,
                                     uint32_t size, uint32_t generation, struct dt_hostshm *shm)
{
    struct dt_rankmsg msg = { .type = DT_RANK_WANT_MEMORY };
    struct dt_reply memory = { .type = DT_RANK_MEMORY, .comm = comm, .fd = -1 };
    dt_result_t r;

    msg.want_memory.comm = comm;
    msg.want_memory.members = members;
    msg.want_memory.size = size;
    r = ask_agent(l, &msg, &memory);
    if (r != DT_OK)
        return r == DT_ERR_STATE ? dt_fail(r, "the job has been stopped") : r;
    r = map_memory(&memory, members, size, generation, shm);
    if (memory.fd >= 0)
        close(memory.fd);
    return r;
}

void dt_agentlink_free_memory(struct dt_agentlink *l, uint64_t comm)
{
    struct dt_rankmsg msg = { .type = DT_RANK_FREE_MEMORY };

    msg.free_memory.comm = comm;
    (void)send_message(l, &msg);
}

/* Returns 0 with the answer, or -1 with errno. */
static int ask_for_segment(struct dt_agentlink *l, const struct dt_given *given,
                           struct dt_reply *answer)
{
    struct dt_rankmsg msg = { .type = DT_RANK_WANT_SEGMENT };
    dt_result_t r;

    msg.want_segment.comm = given->comm;
    msg.want_segment.call = given->call;
    msg.want_segment.bytes = given->bytes;
    msg.want_segment.members = given->members;
    msg.want_segment.giver = given->giver + 1;
    msg.want_segment.takers = given->takers;
    r = ask_agent(l, &msg, answer);
    if (r == DT_OK)
        errno = answer->msg.segment.error;
    else
        errno = r == DT_ERR_NOMEM || r == DT_ERR_IO ? dt_error_details()->error : EPIPE;
    return errno ? -1 : 0;
}

int dt_agentlink_want_segment(struct dt_agentlink *l, uint64_t comm, uint64_t call, uint64_t bytes,
                              uint32_t members, uint64_t *number)
{
    const struct dt_given segment = {
        .comm = comm, .call = call, .bytes = bytes, .members = members, .giver = NOBODY
    };
    struct dt_reply answer = { .type = DT_RANK_SEGMENT, .comm = comm, .fd = -1 };

    if (ask_for_segment(l, &segment, &answer) < 0)
        return -1;
    *number = answer.msg.segment.number;
    errno = EMFILE;
    return answer.fd;
}

int dt_agentlink_give(struct dt_agentlink *l, const struct dt_given *given, int fd)
{
    struct dt_reply answer = { .type = DT_RANK_SEGMENT, .comm = given->comm, .fd = fd };

    return ask_for_segment(l, given, &answer);
}

int dt_agentlink_want_given(struct dt_agentlink *l, const struct dt_given *given)
{
    struct dt_reply answer = { .type = DT_RANK_SEGMENT, .comm = given->comm, .fd = -1 };

    if (ask_for_segment(l, given, &answer) < 0)
        return -1;
    errno = EMFILE;
    return answer.fd;
}

void dt_agentlink_hold(struct dt_agentlink *l, int64_t step)
{
    struct dt_rankmsg msg = { .type = DT_RANK_STEP };
    struct dt_reply go = { .type = DT_RANK_GO, .fd = -1 };

    msg.step.step = step;
    if (ask_agent(l, &msg, &go) == DT_OK && go.msg.go.exit_code != DT_RANK_GO_ON)
        _exit(go.msg.go.exit_code);
}
