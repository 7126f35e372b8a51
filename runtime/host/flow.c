#include "runtime/host/flow.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "runtime/host/clock.h"
#include "runtime/host/least.h"

enum {
    HEADER = DT_DATAFRAME_HEADER,
    REASON_MS = 5000,  /* how long agents may take to tell who waited for whom, */
    HOW_MS = 25,       /* and how a rank died, for which nobody waits long */
    GOODBYE_MS = 1000, /* to tell why, and to learn why a connection ended */
    OVERHEAR_MS = 200, /* how often who waits looks at what is not for this call */
    YIELDS = 100,      /* looks at work that waits for other ranks, before sleeping */
    LOOK_MS = 1,       /* how often who sleeps looks at it */
    LONG_LOOKS = 50,   /* a wait of more looks is a long one, which loses little by sleep, */
    LONG_NS = 50000,   /* and one that has slept for longer */
    LONG_WAITS = 2,    /* after so many in a row the next one is taken to be another */
};

struct run {
    struct dt_mesh *mesh;
    const struct dt_traffic *t;
    size_t left; /* flows that have not ended */
    bool moved;  /* since the last look at all of them */
    bool looks;  /* at work, which nothing that a poll could watch tells the end of */
    int64_t overhear_at;
    unsigned idle;       /* looks since something has moved */
    uint64_t slept_ns;   /* meanwhile */
    unsigned long_waits; /* in a row */
};

static struct dt_link *link_of(const struct run *r, const struct dt_flow *f)
{
    return &r->mesh->links[f->peer];
}

static size_t batch_of(const struct run *r)
{
    return r->t->batch ? r->t->batch : 1;
}

static bool would_wait(void)
{
    return errno == EAGAIN || errno == EINTR;
}

/* Why, the agent is about to say if a rank died or failed; where it does not, the peer is to blame.
 */
static void broke(struct dt_link *link)
{
    if (!link->broken)
        link->broken = dt_clock_ms() + GOODBYE_MS;
}

static bool may_move(const struct run *r, const struct dt_flow *f)
{
    return f->done < f->frames && !link_of(r, f)->broken &&
           (f->begun || !r->t->ready || r->t->ready(r->t->arg, f) > f->done);
}

/* What the headers of a flow name. */
static struct dt_call call_of(const struct run *r, const struct dt_flow *f)
{
    struct dt_call call = *r->t->call;

    if (f->count)
        call.count = *f->count;
    return call;
}

static void put_header(const struct run *r, const struct dt_flow *f, size_t bytes, uint8_t *to)
{
    struct dt_dataframe h = { .type = DT_DATAFRAME_DATA,
                              .rank = dt_mesh_rank(r->mesh, r->mesh->me),
                              .bytes = (uint32_t)bytes,
                              .call = call_of(r, f) };

    dt_dataframe_put(&h, to);
}

static void begin_frame(const struct run *r, struct dt_flow *f)
{
    f->begun = true;
    f->checked = false;
    f->data = r->t->frame(r->t->arg, f, f->done);
    if (f->out)
        put_header(r, f, f->data.iov_len, f->header);
}

static void end_frame(struct run *r, struct dt_flow *f)
{
    f->at -= HEADER + f->data.iov_len;
    f->begun = false;
    f->done++;
    r->left -= f->done == f->frames;
    if (r->t->moved)
        r->t->moved(r->t->arg, f);
}

/* What one system call is to move: the fewer they are, the fuller the packets. */
struct batch {
    size_t frames; /* of them the first one is the flow's frame under way */
    uint8_t headers[DT_FLOW_BATCH + 1][HEADER]; /* of the others, and one to be read along */
    struct iovec iov[2 * DT_FLOW_BATCH + 1];
    size_t n;
};

static void add_piece(struct batch *b, void *base, size_t bytes, size_t done)
{
    if (done < bytes)
        b->iov[b->n++] = (struct iovec){ (uint8_t *)base + done, bytes - done };
}

static void lay_out(const struct run *r, struct dt_flow *f, size_t most, struct batch *b)
{
    size_t ready = r->t->ready ? r->t->ready(r->t->arg, f) : f->frames;

    b->n = 0;
    add_piece(b, f->header, HEADER, f->at);
    add_piece(b, f->data.iov_base, f->data.iov_len, f->at < HEADER ? 0 : f->at - HEADER);
    for (b->frames = 1; b->frames < most; b->frames++) {
        size_t k = f->done + b->frames;
        struct iovec data;

        if (k >= f->frames || k >= ready)
            break;
        data = r->t->frame(r->t->arg, f, k);
        if (f->out)
            put_header(r, f, data.iov_len, b->headers[b->frames]);
        add_piece(b, b->headers[b->frames], HEADER, 0);
        add_piece(b, data.iov_base, data.iov_len, 0);
    }
    if (!f->out && f->done + b->frames < f->frames)
        add_piece(b, b->headers[b->frames], HEADER, 0);
}

/* The agents of all hosts tell in which words; a peer's frame, which has no room for them, may come
 * first. */
static dt_result_t failed_by(const struct run *r, const struct dt_dataframe *h)
{
    int ms = h->code == DT_ERR_TIMEOUT ? REASON_MS
             : h->code == DT_ERR_PEER  ? HOW_MS
                                       : DT_ALARM_TOLD_MS;
    dt_result_t stopped = dt_alarm_await(&r->mesh->alarm, ms);

    if (stopped != DT_OK)
        return stopped;
    return dt_trouble(r->mesh->alarm.trouble,
                      (dt_result_t)(h->code < 0 ? h->code : DT_ERR_INTERNAL), h->rank);
}

/* A header is complete: is it what this call expects? (What came with it went where this call may
 * write; if it is not, that is no longer defined.) */
static dt_result_t check_header(const struct run *r, const struct dt_flow *f)
{
    struct dt_trouble *t = r->mesh->alarm.trouble;
    struct dt_call ours = call_of(r, f);
    uint64_t expected = ours.count;
    struct dt_dataframe h;

    if (!dt_dataframe_get(&h, f->header))
        return dt_trouble(t, DT_ERR_INTERNAL, dt_mesh_rank(r->mesh, f->peer));
    if (h.type == DT_DATAFRAME_FAILURE)
        return failed_by(r, &h);
    if (dt_call_equal(&h.call, &ours) && h.bytes == f->data.iov_len)
        return DT_OK;
    dt_trouble(t, DT_ERR_MISMATCH, h.rank);
    t->theirs = h.call;
    ours.count = h.call.count;
    if (f->count && dt_call_equal(&h.call, &ours)) {
        t->giver = h.rank;
        t->taker = dt_mesh_rank(r->mesh, r->mesh->me);
        t->given = h.call.count;
        t->expected = expected;
    }
    return DT_ERR_MISMATCH;
}

static void send_some(struct run *r, struct dt_flow *f, size_t most)
{
    struct dt_link *link = link_of(r, f);
    struct batch b;
    struct msghdr m = { .msg_iov = b.iov };
    ssize_t n;

    lay_out(r, f, most, &b);
    m.msg_iovlen = b.n;
    n = sendmsg(link->fd, &m, MSG_NOSIGNAL);
    if (n < 0) {
        if (!would_wait())
            broke(link);
        return;
    }
    r->moved = true;
    f->at += (size_t)n;
    while (f->at >= HEADER + f->data.iov_len) {
        end_frame(r, f);
        if (f->at > 0)
            begin_frame(r, f);
    }
    link->mid_frame = f->at > 0;
}

/* How many bytes came: 0 where none are needed to look at a header. */
static ssize_t receive_batch(struct run *r, struct dt_flow *f, struct batch *b)
{
    struct dt_link *link = link_of(r, f);
    struct msghdr m = { 0 };
    ssize_t n;

    b->frames = 1;
    if (f->at >= HEADER && !f->checked)
        return 0;
    lay_out(r, f, batch_of(r), b);
    m.msg_iov = b->iov;
    m.msg_iovlen = b->n;
    n = recvmsg(link->fd, &m, 0);
    if (n == 0 || (n < 0 && !would_wait()))
        broke(link);
    return n > 0 ? n : -1;
}

static dt_result_t receive_some(struct run *r, struct dt_flow *f)
{
    struct batch b;
    ssize_t n = receive_batch(r, f, &b);

    if (n < 0)
        return DT_OK;
    r->moved = true;
    f->at += (size_t)n;
    for (size_t i = 1;; i++) {
        if (!f->checked && f->at >= HEADER) {
            dt_result_t result = check_header(r, f);

            if (result != DT_OK)
                return result;
            f->checked = true;
        }
        if (f->at < HEADER + f->data.iov_len)
            return DT_OK;
        end_frame(r, f);
        memcpy(f->header, b.headers[i], dt_least(f->at, HEADER));
        if (i >= b.frames || f->at == 0)
            return DT_OK;
        begin_frame(r, f);
    }
}

static dt_result_t move(struct run *r, struct dt_flow *f)
{
    if (!f->begun)
        begin_frame(r, f);
    if (!f->out)
        return receive_some(r, f);
    send_some(r, f, batch_of(r));
    return DT_OK;
}

/* Whoever sleeps is to be woken by what completes a header, or then its frame, not by every packet:
 * nothing can be done with less, and frames are sent whole. */
static void want(struct dt_link *link, const struct dt_flow *f)
{
    size_t bytes = f->at < HEADER ? HEADER : HEADER + f->data.iov_len;
    int least = (int)(bytes - f->at);

    if (link->wanted == least)
        return;
    link->wanted = least;
    setsockopt(link->fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least);
}

/* Sleeps until something may have changed. An alarm is heeded when the sockets have been read. */
static void sleep_some(struct run *r)
{
    struct pollfd *p = r->mesh->polls;
    uint64_t begun = dt_clock_ns();
    int64_t now = (int64_t)(begun / 1000000), until = r->looks ? now + LOOK_MS : r->overhear_at;
    nfds_t n = DT_ALARM_FDS;

    for (size_t i = 0; i < r->t->n; i++) {
        const struct dt_flow *f = &r->t->flows[i];
        struct dt_link *link = link_of(r, f);

        if (link->broken && link->broken < until)
            until = link->broken;
        if (!may_move(r, f))
            continue;
        if (!f->out)
            want(link, f);
        p[n++] = (struct pollfd){ .fd = link->fd, .events = f->out ? POLLOUT : POLLIN };
    }
    dt_alarm_poll(&r->mesh->alarm, p, n, until > now ? (int)(until - now) : 0);
    r->slept_ns += dt_clock_ns() - begun;
}

/* Nothing has moved: is there a reason? */
static dt_result_t check(const struct run *r)
{
    dt_result_t result = dt_alarm_check(&r->mesh->alarm);

    for (size_t i = 0; result == DT_OK && i < r->t->n; i++) {
        const struct dt_flow *f = &r->t->flows[i];
        int64_t broken = link_of(r, f)->broken;

        if (broken && broken <= dt_clock_ms())
            result =
                dt_trouble(r->mesh->alarm.trouble, DT_ERR_PEER, dt_mesh_rank(r->mesh, f->peer));
    }
    return result;
}

static bool is_read(const struct run *r, uint32_t peer)
{
    for (size_t i = 0; i < r->t->n; i++) {
        const struct dt_flow *f = &r->t->flows[i];

        if (f->peer == peer && !f->out && f->done < f->frames)
            return true;
    }
    return false;
}

/* What a peer has sent that this call does not read: of a later call, or of another in its place.
 */
static dt_result_t overhear_peer(const struct run *r, const struct dt_link *link)
{
    struct dt_trouble *t = r->mesh->alarm.trouble;
    struct dt_call ours = *r->t->call;
    uint8_t header[HEADER];
    struct dt_dataframe h;

    if (recv(link->fd, header, HEADER, MSG_PEEK | MSG_DONTWAIT) != HEADER ||
        !dt_dataframe_get(&h, header))
        return DT_OK;
    if (h.type == DT_DATAFRAME_FAILURE)
        return failed_by(r, &h);
    if (dt_call_moves_parcels(&ours))
        ours.count = h.call.count;
    if (h.call.number > ours.number || dt_call_equal(&h.call, &ours))
        return DT_OK;
    dt_trouble(t, DT_ERR_MISMATCH, h.rank);
    t->theirs = h.call;
    return DT_ERR_MISMATCH;
}

/* Calls that do not fit may be between ranks that do not send to each other what the other one
 * reads: then all wait, but what was sent says why. */
static dt_result_t overhear(struct run *r)
{
    int64_t now = dt_clock_ms();
    dt_result_t result = DT_OK;

    if (now < r->overhear_at)
        return DT_OK;
    r->overhear_at = now + OVERHEAR_MS;
    for (uint32_t peer = 0; result == DT_OK && peer < r->mesh->size; peer++) {
        if (r->mesh->links[peer].fd >= 0 && !is_read(r, peer))
            result = overhear_peer(r, &r->mesh->links[peer]);
    }
    return result;
}

static void work(struct run *r)
{
    enum dt_flow_work did = r->t->work(r->t->arg);

    r->moved |= did == DT_FLOW_WORKED;
    r->looks = did == DT_FLOW_WORK_WAITS;
}

/* Looks are counted, not time, which also passes while others have the processor: to yield to them
 * costs nobody anything. */
static void count_waits(struct run *r)
{
    bool is_long = r->idle > LONG_LOOKS || r->slept_ns > LONG_NS;

    if (!r->moved) {
        r->idle++;
        return;
    }
    if (r->idle > 0)
        r->long_waits = is_long ? r->long_waits + 1 : 0;
    r->idle = 0;
    r->slept_ns = 0;
}

/* What trickles in along a slow link is not worth a processor. */
static bool may_sleep(const struct run *r)
{
    if (r->looks)
        return r->idle > r->mesh->spins + YIELDS;
    return r->idle > r->mesh->spins || r->long_waits >= LONG_WAITS;
}

static dt_result_t drive(struct run *r)
{
    while (r->left) {
        dt_result_t result = DT_OK;

        r->moved = false;
        for (size_t i = 0; i < r->t->n && result == DT_OK; i++) {
            if (may_move(r, &r->t->flows[i]))
                result = move(r, &r->t->flows[i]);
        }
        if (r->t->work && result == DT_OK)
            work(r);
        count_waits(r);
        if (r->idle && result == DT_OK)
            result = check(r);
        if (result == DT_OK && r->idle && may_sleep(r)) {
            sleep_some(r);
            result = overhear(r);
        } else if (r->idle) {
            sched_yield(); /* a peer may need this very processor, where it plays several hosts */
        }
        if (result != DT_OK)
            return result;
    }
    return DT_OK;
}

/* A peer can be told why this rank fails only between two frames: completes those that are under
 * way, where the peer still takes them. */
static void complete_frames(struct run *r)
{
    int64_t deadline = dt_clock_ms() + GOODBYE_MS;

    for (size_t i = 0; i < r->t->n; i++) {
        struct dt_flow *f = &r->t->flows[i];
        const struct dt_link *link = link_of(r, f);
        int64_t left = 0;

        while (f->out && link->mid_frame && !link->broken &&
               (left = deadline - dt_clock_ms()) > 0) {
            struct pollfd p = { link->fd, POLLOUT, 0 };

            poll(&p, 1, (int)left);
            send_some(r, f, 1);
        }
    }
}

static bool are_connected(const struct dt_mesh *m, const struct dt_traffic *t)
{
    for (size_t i = 0; i < t->n; i++) {
        if (!m->links || m->links[t->flows[i].peer].fd < 0)
            return false;
    }
    return true;
}

static dt_result_t connect_peers(struct dt_mesh *m, const struct dt_traffic *t)
{
    uint32_t *peers = calloc(t->n, sizeof *peers);
    dt_result_t r;

    if (!peers)
        return dt_mesh_no_memory(m);
    for (size_t i = 0; i < t->n; i++)
        peers[i] = t->flows[i].peer;
    r = dt_mesh_need(m, peers, t->n);
    free(peers);
    return r;
}

static dt_result_t make_polls(struct dt_mesh *m, size_t n)
{
    struct pollfd *polls = realloc(m->polls, n * sizeof *polls);

    if (!polls)
        return dt_mesh_no_memory(m);
    m->polls = polls;
    m->n_polls = n;
    return DT_OK;
}

/* What grows with the hosts is not on the stack: it may be a small one of the program's threads. */
static dt_result_t prepare(struct dt_mesh *m, const struct dt_traffic *t)
{
    dt_result_t r = are_connected(m, t) ? DT_OK : connect_peers(m, t);

    if (r == DT_OK && m->n_polls < DT_ALARM_FDS + t->n)
        r = make_polls(m, DT_ALARM_FDS + t->n);
    return r;
}

dt_result_t dt_flow_run(struct dt_mesh *m, const struct dt_traffic *t)
{
    dt_result_t result = prepare(m, t);
    struct run r = { .mesh = m, .t = t, .overhear_at = dt_clock_ms() + OVERHEAR_MS };

    if (result != DT_OK)
        return result;
    for (size_t i = 0; i < t->n; i++)
        r.left += t->flows[i].frames > 0;
    result = drive(&r);
    if (result != DT_OK && result != DT_ERR_PEER)
        complete_frames(&r);
    return result;
}

static void say_goodbye(const struct dt_link *link, const uint8_t *bytes, int64_t deadline)
{
    size_t at = 0;

    while (at < HEADER) {
        struct pollfd p = { link->fd, POLLOUT, 0 };
        int64_t left = deadline - dt_clock_ms();
        ssize_t n = send(link->fd, bytes + at, HEADER - at, MSG_NOSIGNAL);

        if (n < 0 && !would_wait())
            return;
        at += n > 0 ? (size_t)n : 0;
        if (n < 0 && (left <= 0 || poll(&p, 1, (int)left) == 0))
            return;
    }
}

/* After half a frame the connection just ends. */
void dt_flow_fail(struct dt_mesh *m, dt_result_t why)
{
    struct dt_dataframe h = { .type = DT_DATAFRAME_FAILURE, .code = why };
    int64_t deadline = dt_clock_ms() + GOODBYE_MS;
    uint8_t bytes[HEADER];

    if (!m->links)
        return;
    h.rank = m->alarm.trouble->rank;
    dt_dataframe_put(&h, bytes);
    for (uint32_t i = 0; i < m->size; i++) {
        if (m->links[i].fd >= 0 && !m->links[i].mid_frame)
            say_goodbye(&m->links[i], bytes, deadline);
    }
    dt_mesh_close(m);
}
