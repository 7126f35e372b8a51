#include "runtime/host/ring.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "runtime/host/reduce.h"
#include "runtime/wire/codec.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "data travel as they stand in memory");

enum {
    MAGIC = 0x46525444, /* "DTRF" */
    HEADER = 44,
    FRAME_DATA = 0,
    FRAME_FAILURE = 1,
    SMALL = 32 * 1024, /* up to here whole vectors go round, and everybody folds them itself */
    GOODBYE_MS = 1000, /* to tell why, and to learn why a connection ended */
};

struct header {
    uint8_t type;
    uint32_t rank; /* whose call; in a failure: whom to blame */
    uint32_t bytes;
    int32_t code; /* of a failure: a dt_result_t */
    struct dt_call call;
};

static void put_header(uint8_t out[HEADER], const struct header *h)
{
    struct dt_put p = { .data = out, .cap = HEADER, .max = HEADER };

    dt_put_u32(&p, MAGIC);
    dt_put_u8(&p, h->type);
    dt_put_u8(&p, h->call.kind);
    dt_put_u8(&p, h->call.dtype);
    dt_put_u8(&p, h->call.op);
    dt_put_u32(&p, (uint32_t)h->call.root);
    dt_put_u32(&p, h->rank);
    dt_put_u64(&p, h->call.number);
    dt_put_u64(&p, h->call.count);
    dt_put_u32(&p, h->bytes);
    dt_put_u32(&p, (uint32_t)h->code);
    dt_put_u32(&p, h->call.device);
}

static bool get_header(const uint8_t in[HEADER], struct header *h)
{
    struct dt_get g = dt_get_init(in, HEADER);
    bool magic = dt_get_u32(&g) == MAGIC;

    *h = (struct header){ .type = dt_get_u8(&g) };
    h->call.kind = dt_get_u8(&g);
    h->call.dtype = dt_get_u8(&g);
    h->call.op = dt_get_u8(&g);
    h->call.root = (int32_t)dt_get_u32(&g);
    h->rank = dt_get_u32(&g);
    h->call.number = dt_get_u64(&g);
    h->call.count = dt_get_u64(&g);
    h->bytes = dt_get_u32(&g);
    h->code = (int32_t)dt_get_u32(&g);
    h->call.device = (uint8_t)dt_get_u32(&g);
    return magic && dt_get_end(&g) == 0;
}

/* A data flow: frames 0 .. sends-1 go out and frames 0 .. receives-1 come in, both in order. Frame
 * k may go out once more than k - lag frames have come in. */
struct flow {
    size_t sends;
    size_t receives;
    size_t lag;
    struct iovec (*out)(void *arg, size_t k);
    struct iovec (*in)(void *arg, size_t k); /* where frame k's data go */
    void (*arrived)(void *arg, size_t k);    /* may be NULL */
    void *arg;
    const struct dt_call *call;
};

/* How far one direction is in its current frame. */
struct pump {
    size_t frame;
    size_t at; /* bytes of header and data that are through */
    uint8_t header[HEADER];
    struct iovec data;
    int64_t broken; /* the connection ended: until when to wait for the reason; 0: it did not */
};

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void dt_ring_close(struct dt_ring *r)
{
    if (r->next >= 0)
        close(r->next);
    if (r->prev >= 0)
        close(r->prev);
    free(r->scratch);
    r->next = r->prev = -1;
    r->scratch = NULL;
    r->scratch_bytes = 0;
}

/* Only a frame's beginning can be told apart from data: after half a frame the connection just
 * ends. */
void dt_ring_fail(struct dt_ring *r, dt_result_t why)
{
    struct header h = { .type = FRAME_FAILURE, .rank = r->alarm.trouble->rank, .code = why };
    int64_t deadline = now_ms() + GOODBYE_MS;
    uint8_t bytes[HEADER];
    size_t at = 0;

    put_header(bytes, &h);
    while (r->next >= 0 && !r->mid_frame && at < sizeof bytes) {
        struct pollfd p = { r->next, POLLOUT, 0 };
        ssize_t n = send(r->next, bytes + at, sizeof bytes - at, MSG_NOSIGNAL);

        if (n < 0 && errno != EAGAIN && errno != EINTR)
            break;
        at += n > 0 ? (size_t)n : 0;
        if (n < 0 && (now_ms() >= deadline || poll(&p, 1, (int)(deadline - now_ms())) == 0))
            break;
    }
    dt_ring_close(r);
}

static dt_result_t failed_by(struct dt_ring *r, const struct header *h)
{
    return dt_trouble(r->alarm.trouble, (dt_result_t)(h->code < 0 ? h->code : DT_ERR_INTERNAL),
                      h->rank);
}

static bool would_wait(void)
{
    return errno == EAGAIN || errno == EINTR;
}

/* Reads on in the header of a frame that this call does not wait for. True: it is complete, or will
 * never be. */
static bool overhear(struct dt_ring *r, struct pump *in)
{
    ssize_t n = recv(r->prev, in->header + in->at, HEADER - in->at, 0);

    in->at += n > 0 ? (size_t)n : 0;
    return in->at == HEADER || n == 0 || (n < 0 && !would_wait());
}

/* A connection ended. Why, the agent is about to say if a rank died, or the leader before this one
 * may pass it on; where neither does, the neighbour is to blame. */
static dt_result_t lost(struct dt_ring *r, uint32_t neighbour, int64_t deadline, struct pump *in)
{
    dt_result_t stopped = dt_alarm_check(&r->alarm);
    bool hearing = in->at < HEADER;

    for (int64_t left; stopped == DT_OK && (left = deadline - now_ms()) > 0;) {
        struct pollfd p[DT_ALARM_FDS + 1] = { [DT_ALARM_FDS] = { hearing ? r->prev : -1, POLLIN,
                                                                 0 } };
        struct header h;

        stopped = dt_alarm_poll(&r->alarm, p, DT_ALARM_FDS + 1, (int)left);
        if (!p[DT_ALARM_FDS].revents || !overhear(r, in))
            continue;
        hearing = false;
        if (in->at == HEADER && get_header(in->header, &h) && h.type == FRAME_FAILURE)
            return failed_by(r, &h);
    }
    return stopped == DT_OK ? dt_trouble(r->alarm.trouble, DT_ERR_PEER, neighbour) : stopped;
}

/* The header of a frame is complete: is it what this call expects? */
static dt_result_t check_header(struct dt_ring *r, const struct pump *p, const struct flow *f)
{
    struct header h;

    if (!get_header(p->header, &h))
        return dt_trouble(r->alarm.trouble, DT_ERR_INTERNAL, r->prev_rank);
    if (h.type == FRAME_FAILURE)
        return failed_by(r, &h);
    if (dt_call_equal(&h.call, f->call) && h.bytes == p->data.iov_len)
        return DT_OK;
    dt_trouble(r->alarm.trouble, DT_ERR_MISMATCH, h.rank);
    r->alarm.trouble->theirs = h.call;
    return DT_ERR_MISMATCH;
}

/* The rest of a frame, as pieces for sendmsg and recvmsg. */
static struct msghdr rest(struct pump *p, struct iovec iov[2])
{
    size_t header = p->at < HEADER ? HEADER - p->at : 0;
    size_t data = p->at < HEADER ? 0 : p->at - HEADER;

    iov[0] = (struct iovec){ p->header + HEADER - header, header };
    iov[1] = (struct iovec){ (uint8_t *)p->data.iov_base + data, p->data.iov_len - data };
    return (struct msghdr){ .msg_iov = header ? iov : iov + 1, .msg_iovlen = header ? 2 : 1 };
}

/* Sends what goes without waiting; returns whether anything did. */
static bool pump_out(struct dt_ring *r, const struct flow *f, struct pump *p)
{
    struct iovec iov[2];

    if (p->at == 0) {
        struct header h = { FRAME_DATA, r->rank, 0, 0, *f->call };

        p->data = f->out(f->arg, p->frame);
        h.bytes = (uint32_t)p->data.iov_len;
        put_header(p->header, &h);
    }
    struct msghdr m = rest(p, iov);
    ssize_t n = sendmsg(r->next, &m, MSG_NOSIGNAL);
    if (n < 0) {
        p->broken = would_wait() ? 0 : now_ms() + GOODBYE_MS;
        return false;
    }
    p->at += (size_t)n;
    r->mid_frame = p->at < HEADER + p->data.iov_len;
    if (!r->mid_frame) {
        p->at = 0;
        p->frame++;
    }
    return true;
}

/* Receives what is there. The header is read alone: only after it has been checked may data be
 * written into the user's buffer. */
static dt_result_t pump_in(struct dt_ring *r, const struct flow *f, struct pump *p, bool *moved)
{
    dt_result_t result = DT_OK;
    struct iovec iov[2];
    struct msghdr m;
    ssize_t n;

    if (p->at == 0)
        p->data = f->in(f->arg, p->frame);
    m = rest(p, iov);
    m.msg_iovlen = 1;
    n = recvmsg(r->prev, &m, 0);
    if (n == 0 || (n < 0 && !would_wait()))
        return lost(r, r->prev_rank, now_ms() + GOODBYE_MS, p);
    if (n < 0)
        return DT_OK;
    *moved = true;
    p->at += (size_t)n;
    if (p->at == HEADER && m.msg_iov == iov)
        result = check_header(r, p, f);
    if (result == DT_OK && p->at == HEADER + p->data.iov_len) {
        if (f->arrived)
            f->arrived(f->arg, p->frame);
        p->at = 0;
        p->frame++;
    }
    return result;
}

static dt_result_t wait_for(struct dt_ring *r, bool sending, bool receiving, int timeout)
{
    struct pollfd p[DT_ALARM_FDS + 2] = { [DT_ALARM_FDS] = { sending ? r->next : -1, POLLOUT, 0 },
                                          { receiving ? r->prev : -1, POLLIN, 0 } };

    return dt_alarm_poll(&r->alarm, p, DT_ALARM_FDS + 2, timeout);
}

static bool may_send(const struct flow *f, const struct pump *out, const struct pump *in)
{
    return out->frame < f->sends && !out->broken &&
           (out->frame < f->lag || in->frame > out->frame - f->lag);
}

/* The next leader can be told why this one fails only between two frames: completes the one that is
 * under way, if the next leader still takes it. */
static void complete_frame(struct dt_ring *r, const struct flow *f, struct pump *out)
{
    int64_t deadline = now_ms() + GOODBYE_MS;

    while (r->mid_frame && !out->broken && now_ms() < deadline) {
        struct pollfd p = { r->next, POLLOUT, 0 };

        if (!pump_out(r, f, out) && !out->broken)
            poll(&p, 1, GOODBYE_MS);
    }
}

/* After the way out broke, what still comes in may tell why. */
static dt_result_t run(struct dt_ring *r, const struct flow *f)
{
    struct pump out = { 0 }, in = { 0 };
    dt_result_t result = dt_alarm_check(&r->alarm);
    unsigned idle = 0;

    while (result == DT_OK && (out.frame < f->sends || in.frame < f->receives)) {
        bool receiving = in.frame < f->receives;
        bool sending = may_send(f, &out, &in);
        bool moved = sending && pump_out(r, f, &out);
        int64_t left = out.broken ? out.broken - now_ms() : -1;

        if (receiving)
            result = pump_in(r, f, &in, &moved);
        idle = moved ? 0 : idle + 1;
        if (result == DT_OK && out.broken && (left <= 0 || !receiving))
            result = lost(r, r->next_rank, out.broken, &in);
        else if (result == DT_OK && idle > r->spins)
            result = wait_for(r, sending && !out.broken, receiving, (int)left);
    }
    if (result != DT_OK && result != DT_ERR_PEER)
        complete_frame(r, f, &out);
    return result;
}

/* All-reduce of whole vectors, and barrier: piece (me - s) goes out in step s. */
struct pieces {
    const struct dt_ring *ring;
    uint8_t *base; /* one piece per host, in their order */
    size_t bytes;  /* of a piece */
};

static struct iovec piece(const struct pieces *p, size_t steps_back)
{
    size_t i = (p->ring->me + p->ring->n - steps_back % p->ring->n) % p->ring->n;

    return (struct iovec){ p->base + i * p->bytes, p->bytes };
}

static struct iovec piece_out(void *arg, size_t k)
{
    return piece(arg, k);
}

static struct iovec piece_in(void *arg, size_t k)
{
    return piece(arg, k + 1);
}

/* Hands so many pieces on: its own, then those that came. */
static dt_result_t pass_on(struct dt_ring *r, const struct dt_call *call, uint8_t *base,
                           size_t bytes, size_t pieces)
{
    struct pieces p = { r, base, bytes };
    const struct flow f = { .sends = pieces,
                            .receives = pieces,
                            .lag = 1,
                            .out = piece_out,
                            .in = piece_in,
                            .arg = &p,
                            .call = call };

    return run(r, &f);
}

static dt_result_t gather(struct dt_ring *r, const struct dt_call *call, uint8_t *base,
                          size_t bytes)
{
    return pass_on(r, call, base, bytes, r->n - 1);
}

dt_result_t dt_ring_barrier(struct dt_ring *r, const struct dt_call *call)
{
    uint8_t none;

    return gather(r, call, &none, 0);
}

static dt_result_t scratch(struct dt_ring *r, size_t bytes)
{
    if (r->scratch_bytes >= bytes)
        return DT_OK;
    uint8_t *p = realloc(r->scratch, bytes);
    if (!p)
        return dt_trouble(r->alarm.trouble, DT_ERR_NOMEM, r->rank);
    r->scratch = p;
    r->scratch_bytes = bytes;
    return DT_OK;
}

static dt_result_t reduce_small(struct dt_ring *r, const struct dt_call *call, void *buf,
                                size_t bytes)
{
    const void *src[r->n];
    dt_result_t result = scratch(r, r->n * bytes);

    if (result != DT_OK)
        return result;
    if (bytes)
        memcpy(r->scratch + r->me * bytes, buf, bytes);
    result = gather(r, call, r->scratch, bytes);
    if (result != DT_OK || bytes == 0)
        return result;
    for (uint32_t i = 0; i < r->n; i++)
        src[i] = r->scratch + i * bytes;
    struct dt_fold fold = { .dst = buf, .src = src, .n = r->n, .count = call->count, .divisor = 1 };

    dt_reduce(&fold, (dt_dtype_t)call->dtype, (dt_op_t)call->op);
    return DT_OK;
}

/* The ring proper: each of n slices travels round once and is folded at every stop, then travels
 * round again to be known everywhere. A slice goes in segments, which follow each other without a
 * gap. */
struct slices {
    struct dt_ring *ring;
    const struct dt_call *call;
    uint8_t *buf;
    size_t bytes;
    size_t slice;    /* bytes of every slice but the last ones */
    size_t segments; /* of a slice */
    int size;        /* DT_AVG: divides by it */
};

static struct iovec segment(const struct slices *s, size_t slice, size_t j)
{
    size_t end = (slice + 1) * s->slice < s->bytes ? (slice + 1) * s->slice : s->bytes;
    size_t at = slice * s->slice + j * DT_RING_SEGMENT;
    size_t bytes = at < end ? end - at : 0;

    return (struct iovec){ s->buf + (at < s->bytes ? at : s->bytes),
                           bytes < DT_RING_SEGMENT ? bytes : DT_RING_SEGMENT };
}

/* In step s this leader sends slice me - s and receives slice me - s - 1. */
static struct iovec slice_frame(const struct slices *s, size_t k, size_t ahead)
{
    size_t n = s->ring->n;
    size_t step = k / s->segments;

    return segment(s, (s->ring->me + 2 * n - step - ahead) % n, k % s->segments);
}

static struct iovec slice_out(void *arg, size_t k)
{
    return slice_frame(arg, k, 0);
}

static bool folding(const struct slices *s, size_t k)
{
    return k / s->segments < s->ring->n - 1;
}

static struct iovec slice_in(void *arg, size_t k)
{
    const struct slices *s = arg;
    struct iovec v = slice_frame(s, k, 1);

    if (folding(s, k))
        v.iov_base = s->ring->scratch;
    return v;
}

static void slice_arrived(void *arg, size_t k)
{
    const struct slices *s = arg;
    struct iovec v = slice_frame(s, k, 1);
    dt_dtype_t dtype = (dt_dtype_t)s->call->dtype;
    const void *src[2] = { s->ring->scratch, v.iov_base };
    size_t count = v.iov_len / dt_dtype_size(dtype);

    if (!folding(s, k) || count == 0)
        return;
    struct dt_fold fold = { .dst = v.iov_base, .src = src, .n = 2, .count = count, .divisor = 1 };

    dt_reduce(&fold, dtype, (dt_op_t)s->call->op);
    if (s->call->op == DT_AVG && k / s->segments == s->ring->n - 2)
        dt_divide(v.iov_base, count, dtype, s->size);
}

static dt_result_t reduce_large(struct dt_ring *r, const struct dt_call *call, void *buf,
                                size_t bytes, int size)
{
    size_t slice = ((bytes + r->n - 1) / r->n + 63) / 64 * 64;
    size_t segments = (slice + DT_RING_SEGMENT - 1) / DT_RING_SEGMENT;
    struct slices s = { r, call, buf, bytes, slice, segments, size };
    const struct flow f = { .sends = 2 * (r->n - 1) * segments,
                            .receives = 2 * (r->n - 1) * segments,
                            .lag = segments,
                            .out = slice_out,
                            .in = slice_in,
                            .arrived = slice_arrived,
                            .arg = &s,
                            .call = call };
    dt_result_t result = scratch(r, DT_RING_SEGMENT);

    return result == DT_OK ? run(r, &f) : result;
}

dt_result_t dt_ring_all_reduce(struct dt_ring *r, const struct dt_call *call, void *buf, int size)
{
    dt_dtype_t dtype = (dt_dtype_t)call->dtype;
    size_t bytes = call->count * dt_dtype_size(dtype);
    dt_result_t result;

    if (bytes > SMALL)
        return reduce_large(r, call, buf, bytes, size);
    result = reduce_small(r, call, buf, bytes);
    if (result == DT_OK && call->op == DT_AVG)
        dt_divide(buf, call->count, dtype, size);
    return result;
}

/* An empty frame from each leader to its next. Data that flow one way only would never show a
 * leader that the one after it makes another call. */
static dt_result_t greet(struct dt_ring *r, const struct dt_call *call)
{
    uint8_t none;

    return pass_on(r, call, &none, 0, 1);
}

/* Broadcast: the segments go along the ring from root to the leader before it. */
struct stretch {
    uint8_t *buf;
    size_t bytes;
};

static struct iovec stretch_at(void *arg, size_t k)
{
    const struct stretch *s = arg;
    size_t at = k * DT_RING_SEGMENT;
    size_t left = s->bytes - at;

    return (struct iovec){ s->buf + at, left < DT_RING_SEGMENT ? left : DT_RING_SEGMENT };
}

dt_result_t dt_ring_broadcast(struct dt_ring *r, const struct dt_call *call, void *buf,
                              size_t bytes, uint32_t root)
{
    struct stretch s = { buf, bytes };
    size_t frames = bytes ? (bytes + DT_RING_SEGMENT - 1) / DT_RING_SEGMENT : 1;
    bool last = (r->me + 1) % r->n == root;
    const struct flow f = { .sends = last ? 0 : frames,
                            .receives = r->me == root ? 0 : frames,
                            .lag = r->me == root ? frames : 0,
                            .out = stretch_at,
                            .in = stretch_at,
                            .arg = &s,
                            .call = call };
    dt_result_t result = greet(r, call);

    return result == DT_OK ? run(r, &f) : result;
}
