#include "runtime/wire/rankmsg.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/wire/codec.h"
#include "runtime/wire/highfd.h"

enum {
    MAGIC = 0x4b525444, /* "DTRK" */
    PACKET_MAX = DT_RANK_LAST_CALLS_BYTES + 64,
};

enum kind {
    NUMBER, /* an integer of size bytes */
    TEXT,   /* in size bytes, NUL-terminated */
    BYTES,  /* size bytes */
    BLOB,   /* a 16-bit length, then at most size bytes */
};

struct field {
    uint8_t type; /* the message that contains it */
    enum kind kind;
    size_t at;
    size_t size;
};

#define F(type, member, kind)                                                                      \
    {                                                                                              \
        DT_RANK_##type, kind, offsetof(struct dt_rankmsg, member),                                 \
            sizeof((struct dt_rankmsg *)0)->member                                                 \
    }

/* The fields of each message, in wire order. */
/* clang-format off */
static const struct field fields[] = {
    F(HELLO, hello.protocol, NUMBER), F(HELLO, hello.rank, NUMBER),
    F(HELLO, hello.generation, NUMBER), F(HELLO, hello.port, NUMBER),
    F(COMMIT, commit.step, NUMBER), F(COMMIT, commit.kind, NUMBER),
    F(STEP, step.step, NUMBER),
    F(NOTE, note.detail, NUMBER), F(NOTE, note.text, TEXT),
    F(FAILED, failed.comm, NUMBER), F(FAILED, failed.code, NUMBER),
    F(FAILED, failed.rank, NUMBER), F(FAILED, failed.text, TEXT),
    F(WANT_MEMORY, want_memory.comm, NUMBER), F(WANT_MEMORY, want_memory.members, NUMBER),
    F(WANT_MEMORY, want_memory.size, NUMBER),
    F(FREE_MEMORY, free_memory.comm, NUMBER),
    F(LIMIT, limit.ms, NUMBER),
    F(WANT_SEGMENT, want_segment.comm, NUMBER), F(WANT_SEGMENT, want_segment.call, NUMBER),
    F(WANT_SEGMENT, want_segment.bytes, NUMBER), F(WANT_SEGMENT, want_segment.members, NUMBER),
    F(WANT_SEGMENT, want_segment.giver, NUMBER), F(WANT_SEGMENT, want_segment.takers, NUMBER),
    F(LAST_CALLS, last_calls.payload, BLOB),
    F(WELCOME, welcome.generation, NUMBER), F(WELCOME, welcome.rank, NUMBER),
    F(WELCOME, welcome.size, NUMBER), F(WELCOME, welcome.local_rank, NUMBER),
    F(WELCOME, welcome.local_size, NUMBER), F(WELCOME, welcome.node_rank, NUMBER),
    F(WELCOME, welcome.nodes, NUMBER), F(WELCOME, welcome.secret, BYTES),
    F(REFUSED, refused.version, NUMBER), F(REFUSED, refused.text, TEXT),
    F(TABLE, table.bytes, NUMBER),
    F(ABORT, abort.comm, NUMBER), F(ABORT, abort.code, NUMBER), F(ABORT, abort.rank, NUMBER),
    F(GO, go.exit_code, NUMBER),
    F(MEMORY, memory.comm, NUMBER), F(MEMORY, memory.error, NUMBER),
    F(SEGMENT, segment.comm, NUMBER), F(SEGMENT, segment.number, NUMBER),
    F(SEGMENT, segment.error, NUMBER),
};
/* clang-format on */
enum { FIELDS = sizeof fields / sizeof *fields };

_Static_assert(offsetof(struct dt_rankmsg, last_calls.payload) ==
                   offsetof(struct dt_rankmsg, last_calls.bytes) + sizeof(uint16_t),
               "the length of a BLOB stands before its bytes");

static void put_number(struct dt_put *p, const void *from, size_t size)
{
    if (size == sizeof(uint8_t))
        dt_put_u8(p, *(const uint8_t *)from);
    else if (size == sizeof(uint16_t))
        dt_put_u16(p, *(const uint16_t *)from);
    else if (size == sizeof(uint32_t))
        dt_put_u32(p, *(const uint32_t *)from);
    else
        dt_put_u64(p, *(const uint64_t *)from);
}

static void get_number(struct dt_get *g, void *to, size_t size)
{
    if (size == sizeof(uint8_t))
        *(uint8_t *)to = dt_get_u8(g);
    else if (size == sizeof(uint16_t))
        *(uint16_t *)to = dt_get_u16(g);
    else if (size == sizeof(uint32_t))
        *(uint32_t *)to = dt_get_u32(g);
    else
        *(uint64_t *)to = dt_get_u64(g);
}

static void put_field(struct dt_put *p, const struct field *f, const void *from)
{
    const uint16_t *bytes;

    switch (f->kind) {
    case NUMBER:
        put_number(p, from, f->size);
        break;
    case TEXT:
        dt_put_str(p, from);
        break;
    case BYTES:
        dt_put_bytes(p, from, f->size);
        break;
    case BLOB:
        bytes = (const uint16_t *)from - 1;
        dt_put_u16(p, *bytes);
        dt_put_bytes(p, from, *bytes);
    }
}

/* Copies n bytes if the input has them and they do not exceed max. */
static bool copy_bytes(struct dt_get *g, void *to, size_t n, size_t max)
{
    const uint8_t *d = n <= max ? dt_get_bytes(g, n) : NULL;

    if (d)
        memcpy(to, d, n);
    else
        g->failed = true;
    return d != NULL;
}

static void get_text(struct dt_get *g, char *text, size_t size)
{
    uint32_t n = dt_get_u32(g);

    if (copy_bytes(g, text, n, size - 1)) {
        text[n] = '\0';
        g->failed |= strlen(text) != n;
    }
}

static void get_field(struct dt_get *g, const struct field *f, void *to)
{
    uint16_t *bytes;

    switch (f->kind) {
    case NUMBER:
        get_number(g, to, f->size);
        break;
    case TEXT:
        get_text(g, to, f->size);
        break;
    case BYTES:
        copy_bytes(g, to, f->size, f->size);
        break;
    case BLOB:
        bytes = (uint16_t *)to - 1;
        *bytes = dt_get_u16(g);
        copy_bytes(g, to, *bytes, f->size);
    }
}

/* A type without fields does not exist. */
static void put_fields(struct dt_put *p, const struct dt_rankmsg *m)
{
    bool known = false;

    for (int i = 0; i < FIELDS; i++)
        if (fields[i].type == m->type) {
            put_field(p, &fields[i], (const char *)m + fields[i].at);
            known = true;
        }
    p->failed |= !known;
}

static void get_fields(struct dt_get *g, struct dt_rankmsg *m)
{
    bool known = false;

    for (int i = 0; i < FIELDS; i++)
        if (fields[i].type == m->type) {
            get_field(g, &fields[i], (char *)m + fields[i].at);
            known = true;
        }
    g->failed |= !known;
}

/* The ancillary data of a packet. */
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
    put_fields(&p, msg);
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

/* Keeps the first descriptor and closes all others, so that a sender cannot fill this process's
 * table. */
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
    get_fields(&g, msg);
    return dt_get_end(&g);
}

/* If the peer closed its end with unread data, Linux reports an error once, before the data that
 * the peer has sent. (gVisor reports it for ever.) */
static ssize_t receive(int sock, struct msghdr *h, int flags)
{
    int resets = 0;
    ssize_t n;

    do
        n = recvmsg(sock, h, flags | MSG_CMSG_CLOEXEC);
    while (n < 0 && (errno == EINTR || (errno == ECONNRESET && resets++ == 0)));
    return n;
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
    bool whole, sent;
    ssize_t n;

    *from = (struct dt_rankmsg_from){ .fd = -1 };
    n = receive(sock, &h, flags);
    if (n < 0)
        return (int)n;
    read_control(&h, from);
    /* A packet may be empty, but has a sender. (gVisor reports nobody as the sender of the end.) */
    if (n == 0 && from->pid == 0 && from->fd < 0)
        return 0;
    whole = !(h.msg_flags & MSG_TRUNC) && decode(packet, (size_t)n, msg) == 0;
    /* If there is no room for the descriptor, the kernel only drops it. */
    sent = from->fd >= 0 || h.msg_flags & MSG_CTRUNC;
    from->fd = dt_fd_high(from->fd);
    from->lost = sent && from->fd < 0;
    if (whole && (from->lost || !(h.msg_flags & MSG_CTRUNC)))
        return 1;
    errno = EPROTO;
    if (from->fd >= 0)
        close(from->fd);
    from->fd = -1;
    return -1;
}
