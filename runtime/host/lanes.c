#include "runtime/host/lanes.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/host/flow.h"
#include "runtime/host/least.h"
#include "runtime/host/reduce.h"

enum {
    FEW_HOSTS = 16,   /* up to here all may be connected with all */
    WINDOW = 32,      /* frames that wait to be folded, of all peers together, */
    WINDOW_LEAST = 4, /* but so many of each at least */
    ALIGN = 64,       /* slices begin at multiples */
};

void dt_lanes_close(struct dt_lanes *l)
{
    free(l->scratch);
    l->scratch = NULL;
    l->scratch_bytes = 0;
}

dt_result_t dt_lanes_scratch(struct dt_lanes *l, size_t bytes)
{
    uint8_t *p;

    if (l->scratch_bytes >= bytes)
        return DT_OK;
    p = realloc(l->scratch, bytes);
    if (!p)
        return dt_trouble(l->mesh->alarm.trouble, DT_ERR_NOMEM,
                          dt_mesh_rank(l->mesh, l->peers[l->me]));
    l->scratch = p;
    l->scratch_bytes = bytes;
    return DT_OK;
}

static struct dt_flow flow_to(const struct dt_lanes *l, uint32_t place, size_t frames)
{
    return (
        struct dt_flow){ .peer = l->peers[place], .slot = place, .out = true, .frames = frames };
}

static struct dt_flow flow_from(const struct dt_lanes *l, uint32_t place, size_t frames)
{
    return (struct dt_flow){ .peer = l->peers[place], .slot = place, .frames = frames };
}

void dt_lanes_flows_with_all(const struct dt_lanes *l, struct dt_flow *flows, size_t frames)
{
    for (uint32_t i = 1; i < l->n; i++) {
        flows[i - 1] = flow_to(l, (l->me + i) % l->n, frames);
        flows[l->n - 1 + i - 1] = flow_from(l, (l->me + l->n - i) % l->n, frames);
    }
}

/* Few hosts are all connected by the first call, so that ranks whose calls do not fit need not wait
 * for connections that the others do not make. (What more hosts use goes along those of a barrier,
 * but for the direct way of --deterministic and narrow sums.) */
static dt_result_t connect_few(struct dt_lanes *l)
{
    uint32_t peers[FEW_HOSTS];
    size_t n = 0;

    for (uint32_t i = 0; l->n <= FEW_HOSTS && i < l->n; i++) {
        if (i != l->me)
            peers[n++] = l->peers[i];
    }
    return n ? dt_mesh_need(l->mesh, peers, n) : DT_OK;
}

dt_result_t dt_lanes_run(struct dt_lanes *l, const struct dt_traffic *t)
{
    uint32_t peers[t->n];
    dt_result_t r = connect_few(l);

    for (size_t i = 0; i < t->n; i++)
        peers[i] = t->flows[i].peer;
    if (r == DT_OK)
        r = dt_mesh_need(l->mesh, peers, t->n);
    return r == DT_OK ? dt_flow_run(l->mesh, t) : r;
}

/* ---- all-reduce ---- */

void dt_lanes_fold(const struct dt_call *call, void *dst, const void *const *src, size_t n,
                   size_t bytes, int divisor)
{
    dt_dtype_t dtype = (dt_dtype_t)call->dtype;
    struct dt_fold f = {
        .dst = dst, .src = src, .n = n, .count = bytes / dt_dtype_size(dtype), .divisor = divisor
    };

    if (bytes)
        dt_fold(&f, dtype, (dt_op_t)call->op);
}

struct reduction {
    struct dt_lanes *lanes;
    const struct dt_call *call;
    const uint8_t *in;
    uint8_t *out;
    size_t bytes;
    int divisor;
    size_t segments; /* of the whole, or of a slice */
    size_t window;   /* frames of each peer that wait to be folded */
    size_t slice;    /* bytes of every host's slice but the last ones */
    size_t folded;   /* segments */
    struct dt_flow *flows;
    size_t n_flows;
};

static void slice_up(struct reduction *d)
{
    size_t n = d->lanes->n;

    d->slice = ((d->bytes + n - 1) / n + ALIGN - 1) / ALIGN * ALIGN;
    d->segments = dt_flow_segments(d->slice);
}

/* Segment k of what lies from "from" to "to". */
static struct iovec segment(const uint8_t *base, size_t from, size_t to, size_t k)
{
    return dt_flow_segment(base + from, to - from, k);
}

static struct iovec slice_segment(const struct reduction *d, const uint8_t *base, size_t place,
                                  size_t k)
{
    return segment(base, dt_least(place * d->slice, d->bytes),
                   dt_least((place + 1) * d->slice, d->bytes), k);
}

/* Where the segment that another host sends for folding goes. */
static uint8_t *window(const struct reduction *d, uint32_t place, size_t k)
{
    size_t room = dt_least(d->bytes, DT_FLOW_SEGMENT);

    return d->lanes->scratch + (place * d->window + k % d->window) * room;
}

static dt_result_t make_window(struct reduction *d)
{
    size_t room = dt_least(d->bytes, DT_FLOW_SEGMENT), n = d->lanes->n;

    d->window = WINDOW / n < WINDOW_LEAST ? WINDOW_LEAST : dt_least(WINDOW / n, DT_FLOW_BATCH);
    d->window = dt_least(d->window, d->segments);
    return dt_lanes_scratch(d->lanes, n * d->window * room);
}

/* Folds segment k of every host, in their order, where it stands in "in" and is to stand in "out".
 */
static void fold_segment(const struct reduction *d, struct iovec in, struct iovec out, size_t k)
{
    const struct dt_lanes *l = d->lanes;
    const void *src[l->n];

    for (uint32_t i = 0; i < l->n; i++)
        src[i] = i == l->me ? in.iov_base : window(d, i, k);
    dt_lanes_fold(d->call, out.iov_base, src, l->n, in.iov_len, d->divisor);
}

/* Whether segment k of every host is there. In place, what is folded must have been sent. */
static bool can_fold(const struct reduction *d, size_t k, bool sent)
{
    for (size_t i = 0; i < d->n_flows; i++) {
        if ((!d->flows[i].out || sent) && d->flows[i].done <= k)
            return false;
    }
    return k < d->segments;
}

static void flows_with_all(struct reduction *d, struct dt_flow *flows, size_t frames)
{
    dt_lanes_flows_with_all(d->lanes, flows, frames);
    d->flows = flows;
    d->n_flows = 2 * (d->lanes->n - 1);
}

static struct iovec exchange_frame(void *arg, const struct dt_flow *f, size_t k)
{
    const struct reduction *d = arg;
    struct iovec v = segment(d->in, 0, d->bytes, k);

    if (!f->out)
        v.iov_base = window(d, f->slot, k);
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

static dt_result_t exchange(struct reduction *d)
{
    struct dt_flow flows[2 * (d->lanes->n - 1)];
    struct dt_traffic t = { .call = d->call,
                            .flows = flows,
                            .n = sizeof flows / sizeof *flows,
                            .batch = DT_FLOW_BATCH,
                            .frame = exchange_frame,
                            .ready = exchange_ready,
                            .moved = exchange_moved,
                            .arg = d };
    dt_result_t r;

    d->lanes->way = "tcp-exchange";
    d->segments = dt_flow_segments(d->bytes);
    flows_with_all(d, flows, d->segments);
    r = make_window(d);
    return r == DT_OK ? dt_lanes_run(d->lanes, &t) : r;
}

/* Frames of a flow: the segments of the slice that its receiver folds, then those of the slice that
 * its sender has folded. */
static struct iovec direct_frame(void *arg, const struct dt_flow *f, size_t k)
{
    const struct reduction *d = arg;
    size_t me = d->lanes->me;
    struct iovec v;

    if (k >= d->segments)
        return slice_segment(d, d->out, f->out ? me : f->slot, k - d->segments);
    v = slice_segment(d, d->in, f->out ? f->slot : me, k);
    if (!f->out)
        v.iov_base = window(d, f->slot, k);
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

        fold_segment(d, slice_segment(d, d->in, d->lanes->me, k),
                     slice_segment(d, d->out, d->lanes->me, k), k);
    }
}

static dt_result_t direct(struct reduction *d)
{
    struct dt_flow flows[2 * (d->lanes->n - 1)];
    struct dt_traffic t = { .call = d->call,
                            .flows = flows,
                            .n = sizeof flows / sizeof *flows,
                            .batch = DT_FLOW_BATCH,
                            .frame = direct_frame,
                            .ready = direct_ready,
                            .moved = direct_moved,
                            .arg = d };
    dt_result_t r;

    d->lanes->way = "tcp-direct";
    slice_up(d);
    flows_with_all(d, flows, 2 * d->segments);
    r = make_window(d);
    return r == DT_OK ? dt_lanes_run(d->lanes, &t) : r;
}

/* In step s the ring sends slice me - s and receives slice me - s - 1. */
static struct iovec ring_segment(const struct reduction *d, const uint8_t *base, size_t k,
                                 size_t ahead)
{
    size_t n = d->lanes->n;

    return slice_segment(d, base, (d->lanes->me + 2 * n - k / d->segments - ahead) % n,
                         k % d->segments);
}

static bool is_folded(const struct reduction *d, size_t k)
{
    return k / d->segments < d->lanes->n - 1;
}

static uint8_t *ring_place(const struct reduction *d, size_t k)
{
    return d->lanes->scratch + k % DT_FLOW_BATCH * DT_FLOW_SEGMENT;
}

static struct iovec ring_frame(void *arg, const struct dt_flow *f, size_t k)
{
    const struct reduction *d = arg;
    struct iovec v = ring_segment(d, f->out && k < d->segments ? d->in : d->out, k, !f->out);

    if (!f->out && is_folded(d, k))
        v.iov_base = ring_place(d, k);
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

    if (f->out || !is_folded(d, k))
        return;
    in = ring_segment(d, d->in, k, 1);
    out = ring_segment(d, d->out, k, 1);
    const void *src[2] = { ring_place(d, k), in.iov_base };
    dt_lanes_fold(d->call, out.iov_base, src, 2, in.iov_len,
                  is_folded(d, k + d->segments) ? 1 : d->divisor);
}

static dt_result_t ring(struct reduction *d)
{
    struct dt_lanes *l = d->lanes;
    struct dt_flow flows[2];
    struct dt_traffic t = { .call = d->call,
                            .flows = flows,
                            .n = 2,
                            .batch = DT_FLOW_BATCH,
                            .frame = ring_frame,
                            .ready = ring_ready,
                            .moved = ring_moved,
                            .arg = d };
    dt_result_t r = dt_lanes_scratch(l, DT_FLOW_BATCH * DT_FLOW_SEGMENT);

    d->lanes->way = "tcp-ring";
    slice_up(d);
    flows[0] = flow_to(l, (l->me + 1) % l->n, 2 * (l->n - 1) * d->segments);
    flows[1] = flow_from(l, (l->me + l->n - 1) % l->n, 2 * (l->n - 1) * d->segments);
    d->flows = flows;
    d->n_flows = 2;
    return r == DT_OK ? dt_lanes_run(l, &t) : r;
}

/* ---- gathering: every host's block, in log2(hosts) steps ----
 *
 * In step s each host sends the 2^s blocks that it has, its own and those of the hosts after it, to
 * the host 2^s places before, which has them next to its own. */

struct gathering {
    struct dt_lanes *lanes;
    uint8_t *blocks; /* this host's, then those of the hosts after it */
    size_t bytes;    /* of a block */
    struct dt_flow *flows;
    size_t steps;
};

static struct iovec gather_frame(void *arg, const struct dt_flow *f, size_t k)
{
    const struct gathering *g = arg;
    size_t have = (size_t)1 << f->slot;

    (void)k;
    return (struct iovec){ g->blocks + (f->out ? 0 : have * g->bytes),
                           dt_least(have, g->lanes->n - have) * g->bytes };
}

static size_t gather_ready(void *arg, const struct dt_flow *f)
{
    const struct gathering *g = arg;

    for (size_t step = 0; f->out && step < f->slot; step++) {
        if (g->flows[2 * step + 1].done == 0)
            return 0;
    }
    return 1;
}

static dt_result_t gather(struct dt_lanes *l, const struct dt_call *call, uint8_t *blocks,
                          size_t bytes)
{
    struct dt_flow flows[2 * 32];
    struct gathering g = { .lanes = l, .blocks = blocks, .bytes = bytes, .flows = flows };
    struct dt_traffic t = {
        .call = call, .flows = flows, .frame = gather_frame, .ready = gather_ready, .arg = &g
    };

    for (uint32_t have = 1; have < l->n; have *= 2) {
        flows[t.n] = flow_to(l, (l->me + l->n - have) % l->n, 1);
        flows[t.n + 1] = flow_from(l, (l->me + have) % l->n, 1);
        flows[t.n].slot = flows[t.n + 1].slot = (uint32_t)g.steps++;
        t.n += 2;
    }
    return dt_lanes_run(l, &t);
}

static dt_result_t gather_and_fold(struct reduction *d)
{
    struct dt_lanes *l = d->lanes;
    dt_result_t r = dt_lanes_scratch(l, l->n * d->bytes);
    const void *src[l->n];

    d->lanes->way = "tcp-gathering";
    if (r != DT_OK)
        return r;
    memcpy(l->scratch, d->in, d->bytes);
    r = gather(l, d->call, l->scratch, d->bytes);
    for (uint32_t i = 0; i < l->n; i++)
        src[i] = l->scratch + (i + l->n - l->me) % l->n * d->bytes;
    if (r == DT_OK)
        dt_lanes_fold(d->call, d->out, src, l->n, d->bytes, d->divisor);
    return r;
}

dt_result_t dt_lanes_all_reduce(struct dt_lanes *l, const struct dt_call *call, const void *in,
                                void *out, size_t count, int divisor)
{
    struct reduction d = { .lanes = l,
                           .call = call,
                           .in = in,
                           .out = out,
                           .bytes = count * dt_dtype_size((dt_dtype_t)call->dtype),
                           .divisor = divisor };

    if (l->n <= FEW_HOSTS && d.bytes <= l->tuning->net_exchange)
        return exchange(&d);
    if (d.bytes > 0 && d.bytes <= l->tuning->net_gather)
        return gather_and_fold(&d);
    if (l->in_order || (l->n <= FEW_HOSTS && (l->n == 2 || d.bytes <= l->tuning->net_direct)))
        return direct(&d);
    return ring(&d);
}

dt_result_t dt_lanes_barrier(struct dt_lanes *l, const struct dt_call *call)
{
    uint8_t none;

    return gather(l, call, &none, 0);
}

dt_result_t dt_lanes_barrier_adding(struct dt_lanes *l, const struct dt_call *call, uint64_t *word)
{
    dt_result_t r = dt_lanes_scratch(l, l->n * sizeof *word);

    if (r != DT_OK)
        return r;
    memcpy(l->scratch, word, sizeof *word);
    r = gather(l, call, l->scratch, sizeof *word);
    for (uint32_t i = 1; r == DT_OK && i < l->n; i++) {
        uint64_t theirs;

        memcpy(&theirs, l->scratch + i * sizeof theirs, sizeof theirs);
        *word += theirs;
    }
    return r;
}

/* ---- broadcast ----
 *
 * Small data go down a binomial tree, large ones along a chain of hosts, segment by segment. Each
 * receiver also sends an empty frame, for a sender would never learn otherwise that it makes
 * another call. */

struct spread {
    uint8_t *buf;
    size_t bytes;
    const struct dt_flow *source; /* NULL: this host has it */
    size_t segments;
};

static bool carries(const struct spread *s, const struct dt_flow *f)
{
    return f->out != (s->source && f->peer == s->source->peer);
}

static struct iovec spread_frame(void *arg, const struct dt_flow *f, size_t k)
{
    const struct spread *s = arg;

    return carries(s, f) ? segment(s->buf, 0, s->bytes, k) : (struct iovec){ s->buf, 0 };
}

static size_t spread_ready(void *arg, const struct dt_flow *f)
{
    const struct spread *s = arg;

    return f->out && carries(s, f) && s->source ? s->source->done : f->frames;
}

/* Data one way, an empty frame the other way. */
static void pair(const struct dt_lanes *l, struct dt_flow flows[2], uint32_t place, bool to,
                 size_t frames)
{
    flows[0] = flow_to(l, place, to ? frames : 1);
    flows[1] = flow_from(l, place, to ? 1 : frames);
}

dt_result_t dt_lanes_broadcast(struct dt_lanes *l, const struct dt_call *call, void *buf,
                               size_t bytes, uint32_t root)
{
    uint32_t v = (l->me + l->n - root) % l->n; /* the place, counted from root */
    bool tree = bytes <= l->tuning->net_tree;
    uint32_t parent = tree ? v & (v - 1) : v - 1;
    struct dt_flow flows[2 * 33];
    struct spread s = { .buf = buf, .bytes = bytes, .segments = dt_flow_segments(bytes) };
    struct dt_traffic t = { .call = call,
                            .flows = flows,
                            .batch = DT_FLOW_BATCH,
                            .frame = spread_frame,
                            .ready = spread_ready,
                            .arg = &s };

    if (v) {
        pair(l, flows, (parent + root) % l->n, false, s.segments);
        s.source = &flows[1];
        t.n = 2;
    }
    for (uint32_t step = 1; v + step < l->n && (tree ? !(v & step) : step == 1); step *= 2) {
        pair(l, flows + t.n, (v + step + root) % l->n, true, s.segments);
        t.n += 2;
    }
    return dt_lanes_run(l, &t);
}
