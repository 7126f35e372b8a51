#include "runtime/coll/leader_allreduce.h"

#include <stdalign.h>

#include "runtime/base/copy.h"
#include "runtime/base/min.h"
#include "runtime/kernels/dtype.h"

enum {
    /* Frames of each peer that wait to be reduced. More would not fit into the caches. */
    WINDOW = 2,
    ALIGN = 64, /* blocks begin at multiples */
    SUM_BYTES = 8 * 1024,
    /* Up to this many bytes of each host, or of all hosts together, are gathered, which takes few
     * steps for any number of hosts. */
    GATHERED_EACH = 8 * 1024,
    GATHERED_ALL = 64 * 1024,
};

struct reduction {
    struct dt_leaders *leaders;
    const struct dt_call *call;
    const uint8_t *in;
    uint8_t *out;
    size_t bytes;
    double divisor;
    size_t segments; /* of all data, or of a block */
    size_t window;   /* frames of each peer that wait to be reduced */
    size_t block;    /* bytes in each host's block but the last ones */
    size_t folded;   /* segments */
    struct dt_flow *flows;
    size_t n_flows;
};

static size_t block_bytes(const struct dt_leaders *l, size_t bytes)
{
    return ((bytes + l->n - 1) / l->n + ALIGN - 1) / ALIGN * ALIGN;
}

static void divide_into_blocks(struct reduction *d)
{
    d->block = block_bytes(d->leaders, d->bytes);
    d->segments = dt_flow_segments(d->block);
}

/* Segment k of the bytes from "from" to "to". */
static struct iovec segment(const uint8_t *base, size_t from, size_t to, size_t k)
{
    return dt_flow_segment(base + from, to - from, k);
}

static struct iovec block_segment(const struct reduction *d, const uint8_t *base, size_t place,
                                  size_t k)
{
    return segment(base, dt_min(place * d->block, d->bytes),
                   dt_min((place + 1) * d->block, d->bytes), k);
}

/* Where another host's segment is received for reduction. */
static uint8_t *window_slot(const struct reduction *d, uint32_t place, size_t k)
{
    size_t room = dt_min(d->bytes, DT_FLOW_SEGMENT);

    return d->leaders->scratch + (place * d->window + k % d->window) * room;
}

static dt_result_t make_window(struct reduction *d)
{
    size_t room = dt_min(d->bytes, DT_FLOW_SEGMENT), n = d->leaders->n;

    d->window = dt_min(WINDOW, d->segments);
    return dt_leaders_scratch(d->leaders, n * d->window * room);
}

/* Reduces segment k of all hosts, in their order, from "in" to "out". */
static void fold_segment(const struct reduction *d, struct iovec in, struct iovec out, size_t k)
{
    const struct dt_leaders *l = d->leaders;
    const void *src[l->n];

    for (uint32_t i = 0; i < l->n; i++)
        src[i] = i == l->me ? in.iov_base : window_slot(d, i, k);
    /* cppcheck-suppress uninitvar; there is a leader */
    dt_leaders_fold(d->call, out.iov_base, src, l->n, in.iov_len, d->divisor);
}

/* Whether segment k of every host has arrived. In place, this host's segment must also have been
 * sent before the result overwrites it. */
static bool can_fold(const struct reduction *d, size_t k, bool sent)
{
    for (size_t i = 0; i < d->n_flows; i++) {
        if ((!d->flows[i].out || sent) && d->flows[i].done <= k)
            return false;
    }
    return k < d->segments;
}

/* Exchanges this number of frames with all other hosts at once, in each direction. t describes
 * them. */
static dt_result_t run_with_all_hosts(struct reduction *d, size_t frames, struct dt_traffic t)
{
    dt_result_t r = dt_leaders_flows_with_all(d->leaders, frames, &t);

    d->flows = t.flows;
    d->n_flows = t.n;
    t.call = d->call;
    t.batch = DT_FLOW_BATCH;
    t.arg = d;
    if (r == DT_OK)
        r = make_window(d);
    return r == DT_OK ? dt_leaders_run(d->leaders, &t) : r;
}

static struct iovec exchange_frame(void *arg, const struct dt_flow *f, size_t k)
{
    const struct reduction *d = arg;
    struct iovec v = segment(d->in, 0, d->bytes, k);

    if (!f->out)
        v.iov_base = window_slot(d, f->slot, k);
    return v;
}

static size_t exchange_ready(void *arg, const struct dt_flow *f)
{
    const struct reduction *d = arg;

    return f->out ? d->segments : d->folded + d->window;
}

static void exchange_moved(void *arg, const struct dt_flow *f)
{
    struct reduction *d = arg;

    (void)f;
    while (can_fold(d, d->folded, d->in == d->out)) {
        size_t k = d->folded++;

        fold_segment(d, segment(d->in, 0, d->bytes, k), segment(d->out, 0, d->bytes, k), k);
    }
}

static dt_result_t reduce_by_exchange(struct reduction *d)
{
    const struct dt_traffic t = { .frame = exchange_frame,
                                  .ready = exchange_ready,
                                  .moved = exchange_moved };

    d->leaders->algorithm = "tcp-exchange";
    d->segments = dt_flow_segments(d->bytes);
    return run_with_all_hosts(d, d->segments, t);
}

/* The frames of a flow: the segments of the block that the receiver reduces, then those of the
 * block that the sender has reduced. */
static struct iovec direct_frame(void *arg, const struct dt_flow *f, size_t k)
{
    const struct reduction *d = arg;
    size_t me = d->leaders->me;
    struct iovec v;

    if (k >= d->segments)
        return block_segment(d, d->out, f->out ? me : f->slot, k - d->segments);
    v = block_segment(d, d->in, f->out ? f->slot : me, k);
    if (!f->out)
        v.iov_base = window_slot(d, f->slot, k);
    return v;
}

static size_t direct_ready(void *arg, const struct dt_flow *f)
{
    const struct reduction *d = arg;

    if (f->out)
        return d->segments + d->folded;
    return d->folded + d->window < d->segments ? d->folded + d->window : 2 * d->segments;
}

static void direct_moved(void *arg, const struct dt_flow *f)
{
    struct reduction *d = arg;

    (void)f;
    while (can_fold(d, d->folded, false)) {
        size_t k = d->folded++;

        fold_segment(d, block_segment(d, d->in, d->leaders->me, k),
                     block_segment(d, d->out, d->leaders->me, k), k);
    }
}

static dt_result_t reduce_directly(struct reduction *d)
{
    const struct dt_traffic t = { .frame = direct_frame,
                                  .ready = direct_ready,
                                  .moved = direct_moved };

    d->leaders->algorithm = "tcp-direct";
    divide_into_blocks(d);
    return run_with_all_hosts(d, 2 * d->segments, t);
}

/* In step s the ring sends block me - s and receives block me - s - 1. */
static struct iovec ring_segment(const struct reduction *d, const uint8_t *base, size_t k,
                                 size_t ahead)
{
    size_t n = d->leaders->n;

    return block_segment(d, base, (d->leaders->me + 2 * n - k / d->segments - ahead) % n,
                         k % d->segments);
}

static bool must_fold(const struct reduction *d, size_t k)
{
    return k / d->segments < d->leaders->n - 1;
}

static uint8_t *ring_slot(const struct reduction *d, size_t k)
{
    return d->leaders->scratch + k % DT_FLOW_BATCH * DT_FLOW_SEGMENT;
}

static struct iovec ring_frame(void *arg, const struct dt_flow *f, size_t k)
{
    const struct reduction *d = arg;
    struct iovec v = ring_segment(d, f->out && k < d->segments ? d->in : d->out, k, !f->out);

    if (!f->out && must_fold(d, k))
        v.iov_base = ring_slot(d, k);
    return v;
}

static size_t ring_ready(void *arg, const struct dt_flow *f)
{
    const struct reduction *d = arg;

    return f->out ? d->segments + d->flows[1].done : f->frames;
}

static void ring_moved(void *arg, const struct dt_flow *f)
{
    const struct reduction *d = arg;
    size_t k = f->done - 1;
    struct iovec in, out;

    if (f->out || !must_fold(d, k))
        return;
    in = ring_segment(d, d->in, k, 1);
    out = ring_segment(d, d->out, k, 1);
    const void *src[2] = { ring_slot(d, k), in.iov_base };
    dt_leaders_fold(d->call, out.iov_base, src, 2, in.iov_len,
                    must_fold(d, k + d->segments) ? 1 : d->divisor);
}

static dt_result_t reduce_by_ring(struct reduction *d)
{
    struct dt_leaders *l = d->leaders;
    struct dt_flow flows[2];
    struct dt_traffic t = { .call = d->call,
                            .flows = flows,
                            .n = 2,
                            .batch = DT_FLOW_BATCH,
                            .frame = ring_frame,
                            .ready = ring_ready,
                            .moved = ring_moved,
                            .arg = d };
    dt_result_t r = dt_leaders_scratch(l, DT_FLOW_BATCH * DT_FLOW_SEGMENT);

    d->leaders->algorithm = "tcp-ring";
    divide_into_blocks(d);
    flows[0] = dt_leaders_flow_to(l, (l->me + 1) % l->n, 2 * (l->n - 1) * d->segments);
    flows[1] = dt_leaders_flow_from(l, (l->me + l->n - 1) % l->n, 2 * (l->n - 1) * d->segments);
    d->flows = t.flows;
    d->n_flows = t.n;
    return r == DT_OK ? dt_leaders_run(l, &t) : r;
}

static dt_result_t gather_and_fold(struct reduction *d)
{
    struct dt_leaders *l = d->leaders;
    dt_result_t r = dt_leaders_scratch(l, l->n * d->bytes);
    const void *src[l->n];

    d->leaders->algorithm = "tcp-allgather";
    if (r != DT_OK)
        return r;
    dt_copy(l->scratch, d->in, d->bytes);
    r = dt_leaders_gather(l, d->call, l->scratch, d->bytes);
    for (uint32_t i = 0; i < l->n; i++)
        src[i] = l->scratch + (i + l->n - l->me) % l->n * d->bytes;
    if (r == DT_OK)
        dt_leaders_fold(d->call, d->out, src, l->n, d->bytes, d->divisor);
    return r;
}

/* Reduces in the order of the ring, from host "first" on: two operands at a time. */
static void fold_from_host(const struct dt_leaders *l, const struct dt_call *call, uint8_t *dst,
                           const void *const *src, struct dt_range range, uint32_t first,
                           double divisor)
{
    alignas(ALIGN) uint8_t sum[SUM_BYTES];

    for (size_t at = range.at; at < range.at + range.bytes; at += SUM_BYTES) {
        size_t bytes = dt_min(range.at + range.bytes - at, SUM_BYTES);
        const void *two[2] = { (const uint8_t *)src[first] + at };

        for (uint32_t i = 1; i < l->n; i++) {
            bool is_last = i == l->n - 1;

            two[1] = (const uint8_t *)src[(first + i) % l->n] + at;
            dt_leaders_fold(call, is_last ? dst + at : sum, two, 2, bytes, is_last ? divisor : 1);
            two[0] = sum;
        }
    }
}

void dt_leaders_fold_in_ring_order(const struct dt_leaders *l, const struct dt_call *call,
                                   void *dst, const void *const *src, struct dt_range range,
                                   size_t whole, double divisor)
{
    size_t block = block_bytes(l, whole);

    for (size_t done = 0; done < range.bytes;) {
        size_t at = range.at + done, first = at / block;
        size_t bytes = dt_min(range.bytes - done, (first + 1) * block - at);

        fold_from_host(l, call, dst, src, (struct dt_range){ done, bytes }, (uint32_t)first,
                       divisor);
        done += bytes;
    }
}

static bool uses_gathering(const struct dt_leaders *l, size_t bytes)
{
    return bytes > 0 && (bytes <= GATHERED_EACH || bytes <= GATHERED_ALL / l->n);
}

/* A ring would round 16-bit sums at every host. */
static bool ring_allowed(const struct dt_leaders *l, dt_dtype_t dtype)
{
    return !l->in_order && dtype != DT_F16 && dtype != DT_BF16;
}

bool dt_leaders_uses_ring(const struct dt_leaders *l, dt_dtype_t dtype, size_t bytes)
{
    if (!ring_allowed(l, dtype) || uses_gathering(l, bytes))
        return false;
    return l->n > DT_MESH_FEW ||
           (l->n > 2 && bytes > l->tuning->net_direct && bytes > l->tuning->net_exchange);
}

dt_result_t dt_leaders_all_reduce(struct dt_leaders *l, const struct dt_call *call, const void *in,
                                  void *out, size_t count, double divisor)
{
    dt_dtype_t dtype = (dt_dtype_t)call->dtype;
    struct reduction d = { .leaders = l,
                           .call = call,
                           .in = in,
                           .out = out,
                           .bytes = count * dt_dtype_size(dtype),
                           .divisor = divisor };

    if (l->n <= DT_MESH_FEW && d.bytes <= l->tuning->net_exchange)
        return reduce_by_exchange(&d);
    if (uses_gathering(l, d.bytes))
        return gather_and_fold(&d);
    return dt_leaders_uses_ring(l, dtype, d.bytes) ? reduce_by_ring(&d) : reduce_directly(&d);
}
