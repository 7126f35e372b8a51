#include "runtime/tcp/flow.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "runtime/base/clock.h"
#include "runtime/base/min.h"
#include "runtime/tcp/silence.h"

enum {
    HEADER = DT_DATAFRAME_HEADER,
    REASON_MS = 5000, /* agents may take this long to say which rank waited for which */
    /* Time to send the reason of a failure, and to learn why a connection ended. */
    GOODBYE_MS = 1000,
    OVERHEAR_MS = 200, /* how often a waiting rank looks for frames of other calls */
    YIELDS = 100,      /* polls of work that waits for other ranks, before the thread sleeps */
    WORK_POLL_MS = 1,  /* how often a sleeping thread polls such work */
    LONG_POLLS = 50,   /* a wait of more polls is a long one, which loses little by sleeping */
    LONG_NS = 50000,   /* a wait that has slept longer than this is a long one, too */
    LONG_WAITS = 2,    /* after this many long waits in a row the next one is expected to be long */
};

/* The share of a flow that uses one stream. The legs of a flow are adjacent. */
struct dt_leg {
    struct dt_flow *flow;
    struct dt_mesh_link *link;
    uint32_t stream;
    size_t next; /* its first frame that has not moved completely */

    /* of that frame */
    struct iovec data;
    size_t at; /* bytes of its header and data that have moved */
    bool begun;
    bool checked;
    uint8_t header[HEADER];
};

struct flow_run {
    struct dt_mesh *mesh;
    const struct dt_traffic *t;
    uint32_t streams;
    struct dt_leg *legs;
    size_t n;
    size_t left;     /* legs that are not done */
    bool moved;      /* since all legs were last polled */
    bool work_waits; /* for something that poll(2) cannot watch */
    int64_t overhear_at;
    unsigned idle;       /* polls since data last moved */
    uint64_t slept_ns;   /* meanwhile */
    unsigned long_waits; /* in a row */
};

static size_t traffic_batch(const struct dt_traffic *t)
{
    return t->batch ? t->batch : 1;
}

static bool would_wait(void)
{
    return errno == EAGAIN || errno == EINTR;
}

/* If a rank died or failed, the agent will soon say so. If it does not, the peer or the connection
 * is blamed. error: why it broke, or 0 if the peer closed it. */
static void link_broke(struct dt_mesh_link *link, int error)
{
    if (link->blame_at)
        return;
    link->blame_at = dt_clock_ms() + GOODBYE_MS;
    link->error = error == EPIPE ? 0 : error;
}

static dt_result_t blame_peer(const struct flow_run *r, uint32_t peer, int error)
{
    struct dt_coll_error *t = r->mesh->alarm.coll_error;
    dt_result_t result = dt_coll_error(t, DT_ERR_PEER, dt_mesh_rank(r->mesh, peer));

    t->error = error;
    return result;
}

static bool leg_has_ended(const struct dt_leg *g)
{
    return g->next >= g->flow->frames;
}

/* The number of the first frame of the flow that may not move yet. */
static size_t frames_ready(const struct flow_run *r, const struct dt_flow *f)
{
    size_t most = dt_min(f->frames, f->done + traffic_batch(r->t));

    return r->t->ready ? dt_min(most, r->t->ready(r->t->arg, f)) : most;
}

static bool may_move(const struct flow_run *r, const struct dt_leg *g)
{
    return !leg_has_ended(g) && !g->link->blame_at &&
           (g->begun || frames_ready(r, g->flow) > g->next);
}

/* The call that the headers of a flow name. */
static struct dt_call header_call(const struct flow_run *r, const struct dt_flow *f)
{
    struct dt_call call = *r->t->call;

    if (f->count)
        call.count = *f->count;
    return call;
}

static void put_header(const struct flow_run *r, const struct dt_flow *f, size_t bytes, uint8_t *to)
{
    struct dt_dataframe h = { .type = DT_DATAFRAME_DATA,
                              .rank = dt_mesh_rank(r->mesh, r->mesh->me),
                              .bytes = (uint32_t)bytes,
                              .call = header_call(r, f) };

    dt_dataframe_put(&h, to);
}

static void begin_frame(const struct flow_run *r, struct dt_leg *g)
{
    g->begun = true;
    g->checked = false;
    g->data = r->t->frame(r->t->arg, g->flow, g->next);
    if (g->flow->out)
        put_header(r, g->flow, g->data.iov_len, g->header);
}

/* The first frame of this leg's flow that has not moved; past the end if all have. */
static size_t least_next(const struct flow_run *r, const struct dt_leg *g)
{
    const struct dt_leg *first = g - g->stream;
    size_t least = g->flow->frames;

    for (uint32_t i = 0; i < dt_min(r->streams, g->flow->frames); i++)
        least = dt_min(least, first[i].next);
    return least;
}

static void end_frame(struct flow_run *r, struct dt_leg *g)
{
    struct dt_flow *f = g->flow;
    size_t least;

    g->at -= HEADER + g->data.iov_len;
    g->begun = false;
    g->next += r->streams;
    r->left -= leg_has_ended(g);
    least = least_next(r, g);
    while (f->done < least) {
        f->done++;
        if (r->t->moved)
            r->t->moved(r->t->arg, f);
    }
}

/* The data of one system call. Fewer calls fill packets better. */
struct batch {
    size_t frames;                              /* the first of them is the leg's current frame */
    uint8_t headers[DT_FLOW_BATCH + 1][HEADER]; /* of the other frames, and one read ahead */
    struct iovec iov[2 * DT_FLOW_BATCH + 1];
    size_t n;
};

static void add_iovec(struct batch *b, void *base, size_t bytes, size_t done)
{
    if (done < bytes)
        b->iov[b->n++] = (struct iovec){ (uint8_t *)base + done, bytes - done };
}

static void lay_out_batch(const struct flow_run *r, struct dt_leg *g, size_t most, struct batch *b)
{
    const struct dt_flow *f = g->flow;
    size_t before = frames_ready(r, f), k = g->next + r->streams;

    b->n = 0;
    add_iovec(b, g->header, HEADER, g->at);
    add_iovec(b, g->data.iov_base, g->data.iov_len, g->at < HEADER ? 0 : g->at - HEADER);
    for (b->frames = 1; b->frames < most && k < before; b->frames++, k += r->streams) {
        struct iovec data = r->t->frame(r->t->arg, f, k);

        if (f->out)
            put_header(r, f, data.iov_len, b->headers[b->frames]);
        add_iovec(b, b->headers[b->frames], HEADER, 0);
        add_iovec(b, data.iov_base, data.iov_len, 0);
    }
    if (!f->out && k < f->frames)
        add_iovec(b, b->headers[b->frames], HEADER, 0);
}

/* The agents tell all hosts the reason in words. A peer's frame has no room for them, and may
 * arrive first. */
static dt_result_t fail_from_header(const struct flow_run *r, const struct dt_dataframe *h)
{
    int ms = h->code == DT_ERR_TIMEOUT ? REASON_MS : DT_ALARM_TOLD_MS;
    dt_result_t stopped = dt_alarm_await(&r->mesh->alarm, ms);

    if (stopped != DT_OK)
        return stopped;
    return dt_coll_error(r->mesh->alarm.coll_error,
                         (dt_result_t)(h->code < 0 ? h->code : DT_ERR_INTERNAL), h->rank);
}

/* Checks a complete header against this call. (Data that arrived with it went where this call may
 * write. On a mismatch that memory is undefined.) */
static dt_result_t check_header(const struct flow_run *r, const struct dt_leg *g)
{
    const struct dt_flow *f = g->flow;
    struct dt_coll_error *t = r->mesh->alarm.coll_error;
    struct dt_call ours = header_call(r, f);
    uint64_t expected = ours.count;
    struct dt_dataframe h;

    if (!dt_dataframe_get(&h, g->header))
        return dt_coll_error(t, DT_ERR_INTERNAL, dt_mesh_rank(r->mesh, f->peer));
    if (h.type == DT_DATAFRAME_FAILURE)
        return fail_from_header(r, &h);
    if (dt_call_equal(&h.call, &ours) && h.bytes == g->data.iov_len)
        return DT_OK;
    dt_coll_error(t, DT_ERR_MISMATCH, h.rank);
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

/* A connection whose system call failed has broken, unless it is the call's memory that the kernel
 * cannot use. */
static dt_result_t move_failed(const struct flow_run *r, struct dt_mesh_link *link)
{
    struct dt_coll_error *t = r->mesh->alarm.coll_error;

    if (would_wait())
        return DT_OK;
    if (errno != EFAULT) {
        link_broke(link, errno);
        return DT_OK;
    }
    dt_coll_error(t, DT_ERR_IO, dt_mesh_rank(r->mesh, r->mesh->me));
    t->error = EFAULT;
    return DT_ERR_IO;
}

static dt_result_t send_frames(struct flow_run *r, struct dt_leg *g, size_t most)
{
    struct dt_mesh_link *link = g->link;
    struct batch b;
    struct msghdr m = { .msg_iov = b.iov };
    ssize_t n;

    if (!link->used)
        dt_mesh_use(r->mesh, link);
    lay_out_batch(r, g, most, &b);
    m.msg_iovlen = b.n;
    n = sendmsg(link->fd, &m, MSG_NOSIGNAL);
    if (n < 0)
        return move_failed(r, link);
    r->moved = true;
    g->at += (size_t)n;
    while (g->at >= HEADER + g->data.iov_len) {
        end_frame(r, g);
        if (g->at > 0)
            begin_frame(r, g);
    }
    link->mid_frame = g->at > 0;
    return DT_OK;
}

/* Stores the number of bytes that arrived, -1 if none did, or 0 if the header must be checked
 * first. */
static dt_result_t receive_batch(struct flow_run *r, struct dt_leg *g, struct batch *b,
                                 ssize_t *bytes)
{
    struct msghdr m = { 0 };
    ssize_t n;

    b->frames = 1;
    *bytes = 0;
    if (g->at >= HEADER && !g->checked)
        return DT_OK;
    lay_out_batch(r, g, traffic_batch(r->t), b);
    m.msg_iov = b->iov;
    m.msg_iovlen = b->n;
    n = recvmsg(g->link->fd, &m, 0);
    if (n == 0)
        link_broke(g->link, 0);
    *bytes = n > 0 ? n : -1;
    return n < 0 ? move_failed(r, g->link) : DT_OK;
}

static dt_result_t receive_frames(struct flow_run *r, struct dt_leg *g)
{
    struct batch b;
    ssize_t n;
    dt_result_t received = receive_batch(r, g, &b, &n);

    if (received != DT_OK || n < 0)
        return received;
    r->moved = true;
    g->at += (size_t)n;
    for (size_t i = 1;; i++) {
        if (!g->checked && g->at >= HEADER) {
            dt_result_t result = check_header(r, g);

            if (result != DT_OK)
                return result;
            g->checked = true;
        }
        if (g->at < HEADER + g->data.iov_len)
            return DT_OK;
        end_frame(r, g);
        memcpy(g->header, b.headers[i], dt_min(g->at, HEADER));
        if (i >= b.frames || g->at == 0)
            return DT_OK;
        begin_frame(r, g);
    }
}

static dt_result_t move_leg(struct flow_run *r, struct dt_leg *g)
{
    if (!g->begun)
        begin_frame(r, g);
    return g->flow->out ? send_frames(r, g, traffic_batch(r->t)) : receive_frames(r, g);
}

/* Wakes a sleeping thread only when a header or a frame is complete, not for every packet: nothing
 * can be done with less. */
static void set_low_water(const struct dt_leg *g)
{
    struct dt_mesh_link *link = g->link;
    size_t bytes = g->at < HEADER ? HEADER : HEADER + g->data.iov_len;
    int least = (int)(bytes - g->at);

    if (link->low_water == least)
        return;
    link->low_water = least;
    setsockopt(link->fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least);
}

/* Sleeps until something may have changed. The sockets are read before an alarm is acted upon. */
static void sleep_until_ready(struct flow_run *r)
{
    struct pollfd *p = r->mesh->polls;
    uint64_t begun = dt_clock_ns();
    int64_t now = (int64_t)(begun / 1000000),
            until = r->work_waits ? now + WORK_POLL_MS : r->overhear_at;
    nfds_t n = DT_ALARM_FDS;

    for (size_t i = 0; i < r->n; i++) {
        const struct dt_leg *g = &r->legs[i];
        bool out = g->flow->out;

        if (g->link->blame_at && g->link->blame_at < until)
            until = g->link->blame_at;
        if (!may_move(r, g))
            continue;
        if (!out)
            set_low_water(g);
        p[n++] = (struct pollfd){ .fd = g->link->fd, .events = out ? POLLOUT : POLLIN };
    }
    dt_alarm_poll(&r->mesh->alarm, p, n, until > now ? (int)(until - now) : 0);
    r->slept_ns += dt_clock_ns() - begun;
}

/* Whether a link has ended for good. A peer that did not learn that it was accepted has connected
 * again by now. (Then it has sent nothing along this link.) */
static bool is_lost(const struct flow_run *r, struct dt_mesh_link *link)
{
    if (!link->blame_at || link->blame_at > dt_clock_ms())
        return false;
    dt_mesh_renew(r->mesh, link);
    return link->blame_at != 0;
}

/* Nothing has moved: looks for the reason. */
static dt_result_t check_for_reason(const struct flow_run *r)
{
    dt_result_t result = dt_alarm_check(&r->mesh->alarm);

    for (size_t i = 0; result == DT_OK && i < r->n; i++) {
        const struct dt_leg *g = &r->legs[i];

        if (is_lost(r, g->link))
            result = blame_peer(r, g->flow->peer, g->link->error);
    }
    return result;
}

static bool flow_reads_link(const struct flow_run *r, const struct dt_mesh_link *link)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct dt_leg *g = &r->legs[i];

        if (g->link == link && !g->flow->out && !leg_has_ended(g))
            return true;
    }
    return false;
}

/* Looks at what a peer has sent that this call does not read: a frame of a later call, or of
 * another call in place of this one. */
static dt_result_t check_unread_frame(const struct flow_run *r, struct dt_mesh_link *link)
{
    struct dt_coll_error *t = r->mesh->alarm.coll_error;
    struct dt_call ours = *r->t->call;
    uint8_t header[HEADER];
    struct dt_dataframe h;
    ssize_t n = recv(link->fd, header, HEADER, MSG_PEEK | MSG_DONTWAIT);

    if (n == 0 || (n < 0 && !would_wait()))
        dt_mesh_renew(r->mesh, link);
    if (n != HEADER || !dt_dataframe_get(&h, header))
        return DT_OK;
    if (h.type == DT_DATAFRAME_FAILURE)
        return fail_from_header(r, &h);
    if (dt_call_has_pair_counts(&ours))
        ours.count = h.call.count;
    if (h.call.number > ours.number || dt_call_equal(&h.call, &ours))
        return DT_OK;
    dt_coll_error(t, DT_ERR_MISMATCH, h.rank);
    t->theirs = h.call;
    return DT_ERR_MISMATCH;
}

/* If the ranks' calls differ, every rank may wait for frames that no rank sends. Frames that were
 * sent for other calls show the reason. And a rank may wait for one that never got what this rank
 * has sent to it. */
static dt_result_t check_all_links(struct flow_run *r)
{
    int64_t now = dt_clock_ms();
    dt_result_t result = DT_OK;

    if (now < r->overhear_at)
        return DT_OK;
    r->overhear_at = now + OVERHEAR_MS;
    result = dt_mesh_serve(r->mesh);
    for (size_t i = 0; result == DT_OK && i < r->mesh->n_links; i++) {
        struct dt_mesh_link *link = &r->mesh->links[i];

        if (link->fd >= 0 && dt_silence_is_long(&link->silent_since, link->fd, now))
            result = blame_peer(r, dt_mesh_peer(r->mesh, link), ETIMEDOUT);
        else if (link->fd >= 0 && !flow_reads_link(r, link))
            result = check_unread_frame(r, link);
    }
    return result;
}

static void do_other_work(struct flow_run *r)
{
    enum dt_flow_work did = r->t->work(r->t->arg);

    r->moved |= did == DT_FLOW_WORKED;
    r->work_waits = did == DT_FLOW_WORK_WAITS;
}

/* Counts polls instead of time: time also passes while other processes have the CPU, and yielding
 * to them costs nothing. */
static void count_waits(struct flow_run *r)
{
    bool is_long = r->idle > LONG_POLLS || r->slept_ns > LONG_NS;

    if (!r->moved) {
        r->idle++;
        return;
    }
    if (r->idle > 0)
        r->long_waits = is_long ? r->long_waits + 1 : 0;
    r->idle = 0;
    r->slept_ns = 0;
}

/* Data that trickle in over a slow link are not worth a busy CPU. */
static bool may_sleep(const struct flow_run *r)
{
    if (r->work_waits)
        return r->idle > r->mesh->spins + YIELDS;
    return r->idle > r->mesh->spins || r->long_waits >= LONG_WAITS;
}

static dt_result_t drive_flows(struct flow_run *r)
{
    while (r->left) {
        dt_result_t result = DT_OK;

        r->moved = false;
        for (size_t i = 0; i < r->n && result == DT_OK; i++) {
            if (may_move(r, &r->legs[i]))
                result = move_leg(r, &r->legs[i]);
        }
        if (r->t->work && result == DT_OK)
            do_other_work(r);
        count_waits(r);
        if (r->idle && result == DT_OK)
            result = check_for_reason(r);
        if (result == DT_OK && r->idle && may_sleep(r)) {
            sleep_until_ready(r);
            result = check_all_links(r);
        } else if (r->idle) {
            sched_yield(); /* a peer on the same CPU may need it, if hosts are emulated */
        }
        if (result != DT_OK)
            return result;
    }
    return DT_OK;
}

/* A peer can be told the reason of a failure only between two frames. So this completes the frames
 * under way, if the peers still read them. */
static void complete_frames(struct flow_run *r)
{
    int64_t deadline = dt_clock_ms() + GOODBYE_MS;

    for (size_t i = 0; i < r->n; i++) {
        struct dt_leg *g = &r->legs[i];
        const struct dt_mesh_link *link = g->link;
        int64_t left = 0;

        while (g->flow->out && link->mid_frame && !link->blame_at &&
               (left = deadline - dt_clock_ms()) > 0) {
            struct pollfd p = { link->fd, POLLOUT, 0 };

            poll(&p, 1, (int)left);
            if (send_frames(r, g, 1) != DT_OK)
                break;
        }
    }
}

static dt_result_t connect_peers(struct dt_mesh *m, const struct dt_traffic *t, uint32_t streams)
{
    uint32_t *peers = calloc(t->n, sizeof *peers);
    dt_result_t r;

    if (!peers)
        return dt_mesh_no_memory(m);
    for (size_t i = 0; i < t->n; i++)
        peers[i] = t->flows[i].peer;
    r = dt_mesh_need(m, peers, t->n, streams);
    free(peers);
    return r;
}

/* Arrays that grow with the hosts are on the heap: the program's thread may have a small stack. */
static dt_result_t make_leg_arrays(struct dt_mesh *m, size_t legs)
{
    struct pollfd *polls = realloc(m->polls, (DT_ALARM_FDS + legs) * sizeof *polls);
    struct dt_leg *larger;

    if (!polls)
        return dt_mesh_no_memory(m);
    m->polls = polls;
    larger = realloc(m->legs, legs * sizeof *larger);
    if (!larger)
        return dt_mesh_no_memory(m);
    m->legs = larger;
    m->room = legs;
    return DT_OK;
}

static void lay_out_legs(struct flow_run *r)
{
    r->legs = r->mesh->legs;
    for (size_t i = 0; i < r->t->n; i++) {
        struct dt_flow *f = &r->t->flows[i];

        for (uint32_t stream = 0; stream < dt_min(r->streams, f->frames); stream++) {
            struct dt_leg *g = &r->legs[r->n++];

            g->flow = f;
            g->link = dt_mesh_link(r->mesh, f->peer, stream);
            g->stream = stream;
            g->next = stream;
            g->at = 0;
            g->begun = false;
        }
    }
    r->left = r->n;
}

/* A list of peers is needed only if some are not connected. */
static bool are_connected(const struct dt_mesh *m, const struct dt_traffic *t, uint32_t streams)
{
    for (size_t i = 0; i < t->n; i++) {
        if (!dt_mesh_has(m, t->flows[i].peer, streams))
            return false;
    }
    return true;
}

static dt_result_t prepare_run(struct flow_run *r)
{
    struct dt_mesh *m = r->mesh;
    const struct dt_traffic *t = r->t;
    dt_result_t result = DT_OK;

    if (!are_connected(m, t, r->streams))
        result = connect_peers(m, t, r->streams);
    if (result == DT_OK && m->room < t->n * r->streams)
        result = make_leg_arrays(m, t->n * r->streams);
    if (result == DT_OK)
        lay_out_legs(r);
    return result;
}

dt_result_t dt_flow_run(struct dt_mesh *m, const struct dt_traffic *t)
{
    struct flow_run r = { .mesh = m,
                          .t = t,
                          .streams = traffic_batch(t) == 1 || t->one_stream ? 1 : m->streams,
                          .overhear_at = dt_clock_ms() + OVERHEAR_MS };
    dt_result_t result = prepare_run(&r);

    if (result != DT_OK)
        return result;
    result = drive_flows(&r);
    if (result != DT_OK && result != DT_ERR_PEER)
        complete_frames(&r);
    return result;
}

static void say_goodbye(const struct dt_mesh_link *link, const uint8_t *bytes, int64_t deadline)
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

/* If a frame was sent in part, the connection just ends. */
void dt_flow_fail(struct dt_mesh *m, dt_result_t why)
{
    struct dt_dataframe h = { .type = DT_DATAFRAME_FAILURE, .code = why };
    int64_t deadline = dt_clock_ms() + GOODBYE_MS;
    uint8_t bytes[HEADER];

    if (m->n_links == 0)
        return;
    h.rank = m->alarm.coll_error->rank;
    dt_dataframe_put(&h, bytes);
    for (size_t i = 0; i < m->n_links; i++) {
        if (m->links[i].fd >= 0 && !m->links[i].mid_frame)
            say_goodbye(&m->links[i], bytes, deadline);
    }
    dt_mesh_close(m);
}
