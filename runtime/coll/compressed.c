#include "runtime/coll/compressed.h"

#include <assert.h>
#include <string.h>

#include "runtime/base/min.h"
#include "runtime/kernels/reduce.h"
#include "runtime/kernels/wireformat.h"

enum {
    SEGMENT = 64 * 1024, /* numbers in a frame */
    WINDOW = 4,          /* frames in flight with each host, in each direction */
    CHUNK = 4 * 1024,    /* numbers that are reduced at a time; they fit into the cache */
    F32 = sizeof(float)
};

static_assert(SEGMENT % CHUNK == 0 && CHUNK % DT_FORMAT_BLOCK == 0, "chunks are packed separately");

struct compression {
    struct dt_leaders *leaders;
    const uint8_t *in;
    uint8_t *out;
    uint8_t *residual; /* or NULL */
    size_t count;
    int divisor;
    enum dt_wireformat sent;   /* of data to be reduced */
    enum dt_wireformat result; /* of reduced data */
    bool counting;
    float step; /* with 2 bits: the value of a count of 1 */

    size_t block;    /* numbers in each host's block; the last may have fewer */
    size_t segments; /* of a block */
    size_t folded;   /* segments */
    struct dt_flow *flows;
    size_t n_flows;

    size_t sent_bytes; /* of a segment */
    size_t result_bytes;
    size_t window;     /* segments that have memory: WINDOW, or fewer */
    size_t *packed;    /* by host and window slot: one more than the segment that is packed there */
    uint8_t *numbers;  /* a chunk of each host's numbers, then one of their sums */
    uint8_t *outgoing; /* by host: segments on their way there, or for this host's own reduction */
    uint8_t *waiting;  /* by host: segments to reduce */
    uint8_t *arriving; /* by host: segments of its result */
    uint8_t *results;  /* all segments of this host's block */
};

struct elements { /* of the buffer */
    size_t at;
    size_t n;
};

static struct elements segment(const struct compression *d, size_t host, size_t k)
{
    size_t from = dt_min(host * d->block, d->count), to = dt_min(from + d->block, d->count);
    size_t at = dt_min(from + k * SEGMENT, to);

    return (struct elements){ at, dt_min(to - at, SEGMENT) };
}

static struct elements chunk_of(struct elements s, size_t done)
{
    return (struct elements){ s.at + done, dt_min(s.n - done, CHUNK) };
}

static uint8_t *numbers_of(const struct compression *d, size_t host)
{
    return d->numbers + host * CHUNK * F32;
}

/* Which of the slots for segments holds a host's segment k. */
static size_t slot_index(const struct compression *d, size_t host, size_t k)
{
    return host * d->window + k % d->window;
}

static uint8_t *outgoing(const struct compression *d, size_t host, size_t k)
{
    return d->outgoing + slot_index(d, host, k) * d->sent_bytes;
}

static uint8_t *waiting(const struct compression *d, size_t host, size_t k)
{
    return d->waiting + slot_index(d, host, k) * d->sent_bytes;
}

static uint8_t *arriving(const struct compression *d, size_t host, size_t k)
{
    return d->arriving + slot_index(d, host, k) * d->result_bytes;
}

/* ---- arithmetic ---- */

/* Packs a segment, unless it is packed already: the numbers' errors go into the residual once. */
static void pack_segment(const struct compression *d, size_t host, size_t k)
{
    struct elements s = segment(d, host, k);
    uint8_t *to = outgoing(d, host, k);
    size_t *packed = &d->packed[slot_index(d, host, k)];

    if (*packed == k + 1)
        return;
    *packed = k + 1;
    dt_wireformat_pack(d->sent, to, d->in + s.at * F32, s.n, d->step);
    for (size_t done = 0; d->residual && done < s.n; done += CHUNK) {
        struct elements p = chunk_of(s, done);

        dt_wireformat_unpack(d->sent, d->numbers, to + dt_wireformat_bytes(d->sent, done), p.n,
                             d->step);
        dt_wireformat_keep_error(d->residual + p.at * F32, d->in + p.at * F32, d->numbers, p.n, 1);
    }
}

static void unpack_result(const struct compression *d, const uint8_t *from, struct elements p)
{
    dt_wireformat_unpack(d->result, d->out + p.at * F32, from, p.n, d->step / (float)d->divisor);
}

/* Counts are added as whole numbers, and multiplied by the step at the end. */
static void fold_chunk(const struct compression *d, size_t k, size_t done)
{
    const struct dt_leaders *l = d->leaders;
    struct elements p = chunk_of(segment(d, l->me, k), done);
    uint8_t *sum = numbers_of(d, l->n);
    uint8_t *to = d->results + k * d->result_bytes + dt_wireformat_bytes(d->result, done);
    const void *src[l->n];
    struct dt_fold f = { .dst = sum, .src = src, .n = l->n, .count = p.n };

    for (uint32_t i = 0; i < l->n; i++) {
        const uint8_t *from = i == l->me ? outgoing(d, i, k) : waiting(d, i, k);

        src[i] = numbers_of(d, i);
        dt_wireformat_unpack(d->sent, numbers_of(d, i), from + dt_wireformat_bytes(d->sent, done),
                             p.n, 1);
    }
    f.divisor = d->counting ? 1 : d->divisor;
    dt_fold(&f, DT_F32, DT_AVG);
    dt_wireformat_pack(d->result, to, sum, p.n, 1);
    unpack_result(d, to, p);
    if (d->residual && !d->counting)
        dt_wireformat_keep_error(d->residual + p.at * F32, sum, d->out + p.at * F32, p.n,
                                 (float)d->divisor);
}

static void fold_segment(struct compression *d)
{
    size_t k = d->folded++;
    size_t n = segment(d, d->leaders->me, k).n;

    pack_segment(d, d->leaders->me, k);
    for (size_t done = 0; done < n; done += CHUNK)
        fold_chunk(d, k, done);
}

/* ---- moving ---- */

static bool segment_arrived(const struct compression *d)
{
    for (size_t i = 0; i < d->n_flows; i++) {
        if (!d->flows[i].out && d->flows[i].done <= d->folded)
            return false;
    }
    return d->folded < d->segments;
}

/* The frames of a flow: the segments of the block that the receiver reduces, then those of the
 * block that the sender has reduced. */
static struct iovec compressed_frame(void *arg, const struct dt_flow *f, size_t k)
{
    const struct compression *d = arg;
    size_t host = (k < d->segments) == f->out ? f->slot : d->leaders->me;
    struct elements s = segment(d, host, k % d->segments);
    uint8_t *base;

    if (k >= d->segments) {
        k -= d->segments;
        base = f->out ? d->results + k * d->result_bytes : arriving(d, f->slot, k);
        return (struct iovec){ base, dt_wireformat_bytes(d->result, s.n) };
    }
    if (f->out)
        pack_segment(d, host, k);
    base = f->out ? outgoing(d, host, k) : waiting(d, f->slot, k);
    return (struct iovec){ base, dt_wireformat_bytes(d->sent, s.n) };
}

static size_t compressed_ready(void *arg, const struct dt_flow *f)
{
    const struct compression *d = arg;

    if (f->out)
        return d->segments + d->folded;
    return d->folded + d->window < d->segments ? d->folded + d->window : 2 * d->segments;
}

static void compressed_moved(void *arg, const struct dt_flow *f)
{
    struct compression *d = arg;

    if (!f->out && f->done > d->segments) {
        size_t k = f->done - 1 - d->segments;

        unpack_result(d, arriving(d, f->slot, k), segment(d, f->slot, k));
    }
    while (segment_arrived(d))
        fold_segment(d);
}

/* ---- the whole ---- */

static void choose_formats(struct compression *d, const dt_all_reduce_options_t *options)
{
    static const enum dt_wireformat formats[] = {
        [DT_WIRE_F16] = DT_FORMAT_F16,
        [DT_WIRE_BF16] = DT_FORMAT_BF16,
        [DT_WIRE_INT8] = DT_FORMAT_INT8,
        [DT_WIRE_2BIT] = DT_FORMAT_COUNT2,
    };

    d->sent = d->result = formats[options->wire];
    d->counting = options->wire == DT_WIRE_2BIT;
    d->step = options->threshold;
    if (d->counting)
        d->result = d->leaders->n <= 7 ? DT_FORMAT_COUNT4 : DT_FORMAT_COUNT8;
}

static dt_result_t make_buffers(struct compression *d)
{
    struct dt_leaders *l = d->leaders;
    size_t most = dt_min(d->block, SEGMENT), slots;
    dt_result_t r;

    d->window = dt_min(d->segments, WINDOW);
    slots = l->n * d->window;
    d->sent_bytes = dt_wireformat_bytes(d->sent, most);
    d->result_bytes = dt_wireformat_bytes(d->result, most);
    r = dt_leaders_scratch(l, slots * sizeof *d->packed + (l->n + 1) * CHUNK * F32 +
                                  2 * slots * d->sent_bytes +
                                  (slots + d->segments) * d->result_bytes);
    if (r != DT_OK)
        return r;
    d->packed = (size_t *)l->scratch;
    memset(d->packed, 0, slots * sizeof *d->packed);
    d->numbers = l->scratch + slots * sizeof *d->packed;
    d->outgoing = d->numbers + (l->n + 1) * CHUNK * F32;
    d->waiting = d->outgoing + slots * d->sent_bytes;
    d->arriving = d->waiting + slots * d->sent_bytes;
    d->results = d->arriving + slots * d->result_bytes;
    return DT_OK;
}

static void divide_into_blocks(struct compression *d)
{
    size_t n = d->leaders->n, block = DT_FORMAT_BLOCK;

    d->block = ((d->count + n - 1) / n + block - 1) / block * block;
    d->segments = d->block ? (d->block + SEGMENT - 1) / SEGMENT : 1;
}

dt_result_t dt_compressed_all_reduce(struct dt_leaders *l, const struct dt_call *call,
                                     const dt_all_reduce_options_t *options, const void *in,
                                     void *out, size_t count, int divisor)
{
    struct compression d = { .leaders = l,
                             .in = in,
                             .out = out,
                             .residual = (uint8_t *)options->residual,
                             .count = count,
                             .divisor = divisor };
    struct dt_traffic t = { .call = call,
                            .batch = WINDOW,
                            .frame = compressed_frame,
                            .ready = compressed_ready,
                            .moved = compressed_moved,
                            .arg = &d };
    dt_result_t r;

    l->algorithm = "tcp-compressed";
    choose_formats(&d, options);
    divide_into_blocks(&d);
    r = dt_leaders_flows_with_all(l, 2 * d.segments, &t);
    d.flows = t.flows;
    d.n_flows = t.n;
    if (r == DT_OK)
        r = make_buffers(&d);
    return r == DT_OK ? dt_leaders_run(l, &t) : r;
}
