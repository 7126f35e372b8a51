#include "runtime/wire/rankmsg.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/wire/codec.h"

enum {
    MAGIC = 0x4b525444, /* "DTRK" */
    PACKET_MAX = DT_RANK_LAST_CALLS_BYTES + 64,
};

/* The agent's types are all above the rank's. */
static bool is_from_rank(uint8_t type)
{
    return type < DT_RANK_WELCOME;
}

static void put_from_rank(struct dt_put *p, const struct dt_rankmsg *m)
{
    switch (m->type) {
    case DT_RANK_HELLO:
        dt_put_u32(p, m->hello.protocol);
        dt_put_u32(p, m->hello.rank);
        dt_put_u32(p, m->hello.generation);
        dt_put_u16(p, m->hello.port);
        break;
    case DT_RANK_COMMIT:
        dt_put_u64(p, (uint64_t)m->commit.step);
        dt_put_u8(p, m->commit.restored);
        break;
    case DT_RANK_STEP:
        dt_put_u64(p, (uint64_t)m->step.step);
        break;
    case DT_RANK_NOTE:
        dt_put_str(p, m->note.text);
        break;
    case DT_RANK_FAILED:
        dt_put_u64(p, m->failed.comm);
        dt_put_u32(p, (uint32_t)m->failed.code);
        dt_put_u32(p, m->failed.rank);
        dt_put_str(p, m->failed.text);
        break;
    case DT_RANK_WANT_MEMORY:
        dt_put_u64(p, m->want_memory.comm);
        dt_put_u32(p, m->want_memory.members);
        dt_put_u32(p, m->want_memory.size);
        break;
    case DT_RANK_FREE_MEMORY:
        dt_put_u64(p, m->free_memory.comm);
        break;
    case DT_RANK_LIMIT:
        dt_put_u32(p, m->limit.ms);
        break;
    case DT_RANK_WANT_SEGMENT:
        dt_put_u64(p, m->want_segment.comm);
        dt_put_u64(p, m->want_segment.call);
        dt_put_u64(p, m->want_segment.bytes);
        dt_put_u32(p, m->want_segment.members);
        dt_put_u32(p, m->want_segment.giver);
        dt_put_u32(p, m->want_segment.takers);
        break;
    case DT_RANK_LAST_CALLS:
        dt_put_u16(p, m->last_calls.bytes);
        dt_put_bytes(p, m->last_calls.payload, m->last_calls.bytes);
        break;
    default:
        p->failed = true;
    }
}

static void put_from_agent(struct dt_put *p, const struct dt_rankmsg *m)
{
    switch (m->type) {
    case DT_RANK_WELCOME:
        dt_put_u32(p, m->welcome.generation);
        dt_put_u32(p, m->welcome.rank);
        dt_put_u32(p, m->welcome.size);
        dt_put_u32(p, m->welcome.local_rank);
        dt_put_u32(p, m->welcome.local_size);
        dt_put_u32(p, m->welcome.node_rank);
        dt_put_u32(p, m->welcome.nodes);
        dt_put_bytes(p, m->welcome.secret, DT_SECRET_BYTES);
        break;
    case DT_RANK_REFUSED:
        dt_put_u8(p, m->refused.version);
        dt_put_str(p, m->refused.text);
        break;
    case DT_RANK_TABLE:
        dt_put_u64(p, m->table.bytes);
        break;
    case DT_RANK_MEMORY:
        dt_put_u64(p, m->memory.comm);
        dt_put_u32(p, (uint32_t)m->memory.error);
        break;
    case DT_RANK_SEGMENT:
        dt_put_u64(p, m->segment.comm);
        dt_put_u64(p, m->segment.number);
        dt_put_u32(p, (uint32_t)m->segment.error);
        break;
    case DT_RANK_ABORT:
        dt_put_u64(p, m->abort.comm);
        dt_put_u32(p, (uint32_t)m->abort.code);
        dt_put_u32(p, m->abort.rank);
        break;
    case DT_RANK_GO:
        dt_put_u32(p, (uint32_t)m->go.exit_code);
        break;
    default:
        p->failed = true;
    }
}

static void get_text(struct dt_get *g, char *text, size_t size)
{
    uint32_t n = dt_get_u32(g);
    const uint8_t *d = n < size ? dt_get_bytes(g, n) : NULL;

    if (!d || memchr(d, '\0', n)) {
        g->failed = true;
        return;
    }
    memcpy(text, d, n);
    text[n] = '\0';
}

static void get_secret(struct dt_get *g, uint8_t *secret)
{
    const uint8_t *d = dt_get_bytes(g, DT_SECRET_BYTES);

    if (d)
        memcpy(secret, d, DT_SECRET_BYTES);
}

static void get_last_calls(struct dt_get *g, struct dt_rankmsg *m)
{
    uint16_t n = dt_get_u16(g);
    const uint8_t *d = n <= DT_RANK_LAST_CALLS_BYTES ? dt_get_bytes(g, n) : NULL;

    if (!d) {
        g->failed = true;
        return;
    }
    m->last_calls.bytes = n;
    memcpy(m->last_calls.payload, d, n);
}

static void get_from_rank(struct dt_get *g, struct dt_rankmsg *m)
{
    switch (m->type) {
    case DT_RANK_HELLO:
        m->hello.protocol = dt_get_u32(g);
        m->hello.rank = dt_get_u32(g);
        m->hello.generation = dt_get_u32(g);
        m->hello.port = dt_get_u16(g);
        break;
    case DT_RANK_COMMIT:
        m->commit.step = (int64_t)dt_get_u64(g);
        m->commit.restored = dt_get_u8(g);
        break;
    case DT_RANK_STEP:
        m->step.step = (int64_t)dt_get_u64(g);
        break;
    case DT_RANK_NOTE:
        get_text(g, m->note.text, sizeof m->note.text);
        break;
    case DT_RANK_FAILED:
        m->failed.comm = dt_get_u64(g);
        m->failed.code = (int32_t)dt_get_u32(g);
        m->failed.rank = dt_get_u32(g);
        get_text(g, m->failed.text, sizeof m->failed.text);
        break;
    case DT_RANK_WANT_MEMORY:
        m->want_memory.comm = dt_get_u64(g);
        m->want_memory.members = dt_get_u32(g);
        m->want_memory.size = dt_get_u32(g);
        break;
    case DT_RANK_FREE_MEMORY:
        m->free_memory.comm = dt_get_u64(g);
        break;
    case DT_RANK_LIMIT:
        m->limit.ms = dt_get_u32(g);
        break;
    case DT_RANK_WANT_SEGMENT:
        m->want_segment.comm = dt_get_u64(g);
        m->want_segment.call = dt_get_u64(g);
        m->want_segment.bytes = dt_get_u64(g);
        m->want_segment.members = dt_get_u32(g);
        m->want_segment.giver = dt_get_u32(g);
        m->want_segment.takers = dt_get_u32(g);
        break;
    case DT_RANK_LAST_CALLS:
        get_last_calls(g, m);
        break;
    default:
        g->failed = true;
    }
}

static void get_from_agent(struct dt_get *g, struct dt_rankmsg *m)
{
    switch (m->type) {
    case DT_RANK_WELCOME:
        m->welcome.generation = dt_get_u32(g);
        m->welcome.rank = dt_get_u32(g);
        m->welcome.size = dt_get_u32(g);
        m->welcome.local_rank = dt_get_u32(g);
        m->welcome.local_size = dt_get_u32(g);
        m->welcome.node_rank = dt_get_u32(g);
        m->welcome.nodes = dt_get_u32(g);
        get_secret(g, m->welcome.secret);
        break;
    case DT_RANK_REFUSED:
        m->refused.version = dt_get_u8(g);
        get_text(g, m->refused.text, sizeof m->refused.text);
        break;
    case DT_RANK_TABLE:
        m->table.bytes = dt_get_u64(g);
        break;
    case DT_RANK_MEMORY:
        m->memory.comm = dt_get_u64(g);
        m->memory.error = (int32_t)dt_get_u32(g);
        break;
    case DT_RANK_SEGMENT:
        m->segment.comm = dt_get_u64(g);
        m->segment.number = dt_get_u64(g);
        m->segment.error = (int32_t)dt_get_u32(g);
        break;
    case DT_RANK_ABORT:
        m->abort.comm = dt_get_u64(g);
        m->abort.code = (int32_t)dt_get_u32(g);
        m->abort.rank = dt_get_u32(g);
        break;
    case DT_RANK_GO:
        m->go.exit_code = (int32_t)dt_get_u32(g);
        break;
    default:
        g->failed = true;
    }
}

/* What may stand beside the bytes of a packet. */
union control {
    struct cmsghdr align;
    char buf[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
};

int dt_rankmsg_send(int sock, const struct dt_rankmsg *msg, int pass, int flags)
{
    struct dt_put p = { .max = PACKET_MAX };
    union control control = { 0 };
    struct iovec iov;
    struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };
    ssize_t n = -1;

    dt_put_u32(&p, MAGIC);
    dt_put_u8(&p, msg->type);
    (is_from_rank(msg->type) ? put_from_rank : put_from_agent)(&p, msg);
    if (pass >= 0) {
        h.msg_control = control.buf;
        h.msg_controllen = CMSG_SPACE(sizeof(int));
        CMSG_FIRSTHDR(&h)->cmsg_level = SOL_SOCKET;
        CMSG_FIRSTHDR(&h)->cmsg_type = SCM_RIGHTS;
        CMSG_FIRSTHDR(&h)->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&h)), &pass, sizeof pass);
    }
    iov = (struct iovec){ p.data, p.len };
    errno = ENOMEM;
    while (!p.failed && (n = sendmsg(sock, &h, flags | MSG_NOSIGNAL)) < 0 && errno == EINTR)
        ;
    dt_put_free(&p);
    return n < 0 ? -1 : 0;
}

/* Keeps the first descriptor and closes all others: a sender cannot fill our table with them. */
static void take_fds(const struct cmsghdr *c, struct dt_rankmsg_from *from)
{
    size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

    for (size_t i = 0; i < n; i++) {
        int fd;

        memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
        if (from->fd < 0)
            from->fd = fd;
        else
            close(fd);
    }
}

static void read_control(struct msghdr *h, struct dt_rankmsg_from *from)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
        struct ucred cred;

        if (c->cmsg_level != SOL_SOCKET)
            continue;
        if (c->cmsg_type == SCM_RIGHTS) {
            take_fds(c, from);
        } else if (c->cmsg_type == SCM_CREDENTIALS && c->cmsg_len == CMSG_LEN(sizeof cred)) {
            memcpy(&cred, CMSG_DATA(c), sizeof cred);
            from->pid = cred.pid;
        }
    }
}

static int decode(const void *packet, size_t n, struct dt_rankmsg *msg)
{
    struct dt_get g = dt_get_init(packet, n);

    memset(msg, 0, sizeof *msg);
    if (dt_get_u32(&g) != MAGIC)
        return -1;
    msg->type = dt_get_u8(&g);
    (is_from_rank(msg->type) ? get_from_rank : get_from_agent)(&g, msg);
    return dt_get_end(&g);
}

int dt_rankmsg_recv(int sock, struct dt_rankmsg *msg, struct dt_rankmsg_from *from, int flags)
{
    uint8_t packet[PACKET_MAX];
    union control control;
    struct iovec iov = { packet, sizeof packet };
    struct msghdr h = { .msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = control.buf,
                        .msg_controllen = sizeof control.buf };
    bool whole;
    ssize_t n;

    *from = (struct dt_rankmsg_from){ .fd = -1 };
    /* That the other side ended with something unread is told once, and before what it has sent. */
    do
        n = recvmsg(sock, &h, flags | MSG_CMSG_CLOEXEC);
    while (n < 0 && (errno == EINTR || errno == ECONNRESET));
    if (n <= 0)
        return (int)n;
    read_control(&h, from);
    whole = !(h.msg_flags & MSG_TRUNC) && decode(packet, (size_t)n, msg) == 0;
    if (whole && !(h.msg_flags & MSG_CTRUNC))
        return 1;
    /* Where there is no room for a descriptor the system drops it and says no more than that. */
    errno = whole && from->fd < 0 ? EMFILE : EPROTO;
    if (from->fd >= 0)
        close(from->fd);
    from->fd = -1;
    return -1;
}
