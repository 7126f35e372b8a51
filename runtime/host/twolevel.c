#include "runtime/host/twolevel.h"

#include <string.h>

#include "runtime/host/least.h"
#include "runtime/host/meet.h"
#include "runtime/host/reduce.h"
#include "runtime/host/rounds.h"

enum {
    LANES_MOST = 8,    /* one core each; more connections than that fill no network */
    HOSTS_MOST = 8,    /* up to here each of them may send to all others at once */
    PART_LEAST = 8192, /* bytes of a host's part of a slice, below which frames cost too much */
    ALIGN = 128,       /* parts begin at multiples: no two ranks write one cache line pair */
    BEHIND = 3,        /* rounds from that which folds a chunk to that which spreads its result */
    WINDOW = 8,        /* frames of each peer that wait to be folded */
    CHUNKS_LEAST = 4,  /* fewer would not overlap */
};

/* Round i, within a host, folds chunk i there and spreads the result of chunk i - BEHIND. A rank
 * that is no lane makes rounds, and no more. A lane makes them whenever it can while frames move:
 * its first one before, and the last ones after. */
struct reduction {
    const struct dt_twolevel *t;
    const struct dt_call *call;
    const uint8_t *in;
    uint8_t *out; /* of this rank's slice: first the host's sums, then all hosts' */
    size_t bytes;
    int divisor;
    bool huge;
    size_t chunks;
    size_t chunk; /* bytes, of all but the last one; likewise: */
    size_t slice;
    size_t part;
    size_t segments; /* of a part */
    size_t rounds;   /* that this rank has ended */
    bool staged;     /* and what it gives to the next one */
    size_t folded;   /* segments of this host's parts */
    struct dt_flow *flows;
    size_t n_flows;
};

struct span {
    size_t at;
    size_t bytes;
};

static size_t up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* Piece i of those of so many bytes that a span has. */
static struct span piece(struct span of, size_t bytes, size_t i)
{
    size_t from = dt_least(i * bytes, of.bytes), to = dt_least((i + 1) * bytes, of.bytes);

    return (struct span){ of.at + from, to - from };
}

static struct span chunk_of(const struct reduction *d, size_t chunk)
{
    return piece((struct span){ 0, d->bytes }, d->chunk, chunk);
}

static struct span slice_of(const struct reduction *d, size_t chunk, size_t lane)
{
    return piece(chunk_of(d, chunk), d->slice, lane);
}

/* Segment k of the parts of a host, of this lane, one chunk's after the other's. */
static struct iovec segment(const struct reduction *d, uint32_t host, size_t k)
{
    size_t chunk = k / d->segments;
    struct span part = piece(slice_of(d, chunk, d->t->shm->me), d->part, host);

    return dt_flow_segment(d->out + part.at, part.bytes, k % d->segments);
}

static bool is_lane(const struct reduction *d)
{
    return d->t->shm->me < d->t->width;
}

/* ---- within the host ---- */

static size_t rounds_of(const struct reduction *d)
{
    return d->chunks + BEHIND;
}

static size_t round_bytes(const struct reduction *d)
{
    return d->chunk + d->slice;
}

/* What others fold of this rank's chunk, then, if it is a lane, the result of its slice. */
static void stage(const struct reduction *d)
{
    struct dt_shm *s = d->t->shm;
    uint8_t *staging = dt_round_staging(s, s->me);
    size_t i = d->rounds;
    struct span chunk = chunk_of(d, i), own = { chunk.at + chunk.bytes, 0 };

    if (is_lane(d))
        own = slice_of(d, i, s->me);
    if (i < d->chunks) {
        size_t after = own.at + own.bytes - chunk.at;

        dt_stream_copy(&s->stream, staging, d->in + chunk.at, own.at - chunk.at);
        dt_stream_copy(&s->stream, staging + after, d->in + chunk.at + after, chunk.bytes - after);
    }
    if (i >= BEHIND && is_lane(d)) {
        own = slice_of(d, i - BEHIND, s->me);
        dt_stream_copy(&s->stream, staging + d->chunk, d->out + own.at, own.bytes);
    }
}

static void fold_slice(const struct reduction *d)
{
    const struct dt_shm *s = d->t->shm;
    struct span chunk = chunk_of(d, d->rounds), own = slice_of(d, d->rounds, s->me);
    const void *src[s->n];

    for (uint32_t i = 0; i < s->n; i++)
        src[i] = i == s->me ? d->in + own.at : dt_round_staging(s, i) + own.at - chunk.at;
    dt_lanes_fold(d->call, d->out + own.at, src, s->n, own.bytes, 1);
}

/* Takes the other lanes' results. */
static void spread(const struct reduction *d)
{
    const struct dt_shm *s = d->t->shm;

    for (uint32_t i = 0; i < d->t->width; i++) {
        uint32_t lane = (s->me + i) % d->t->width;
        struct span slice = slice_of(d, d->rounds - BEHIND, lane);
        const uint8_t *from = dt_round_staging(s, lane) + d->chunk;

        if (lane == s->me)
            continue;
        if (d->huge)
            dt_stream_past_caches(d->out + slice.at, from, slice.bytes);
        else
            memcpy(d->out + slice.at, from, slice.bytes);
    }
}

/* Everybody's data stand in the staging. */
static void end_round(struct reduction *d)
{
    if (d->rounds < d->chunks && is_lane(d))
        fold_slice(d);
    if (d->rounds >= BEHIND)
        spread(d);
    dt_round_publish(d->t->shm, DT_LEFT);
    d->rounds++;
    d->staged = false;
}

/* The next round, or what is left of it, waiting for the others. */
static dt_result_t make_round(struct reduction *d)
{
    struct dt_shm *s = d->t->shm;
    dt_result_t r = DT_OK;

    if (!d->staged) {
        r = dt_round_begin(s, round_bytes(d));
        if (r != DT_OK)
            return r;
        stage(d);
        if (d->rounds == 0)
            dt_meet_post(s, d->call, NULL, 0);
        r = dt_meet(s, d->rounds == 0);
    } else {
        r = dt_round_await_all(s, DT_IN);
    }
    if (r == DT_OK)
        end_round(d);
    return r;
}

/* ---- between the hosts ----
 *
 * Of every chunk a flow has segments to be folded by its receiver, then segments that its sender
 * has folded; but before the latter come those to be folded of the next chunk, so that there are
 * some to send while the other side folds. */

/* Where in a flow segment k stands. */
static size_t frame_of(const struct reduction *d, size_t k, bool is_folded)
{
    size_t chunk = k / d->segments, place = chunk ? 2 * chunk - 1 : 0;

    if (is_folded)
        place = chunk + 1 < d->chunks ? 2 * chunk + 2 : 2 * chunk + 1;
    return place * d->segments + k % d->segments;
}

/* The segment of a frame. */
static size_t segment_of(const struct reduction *d, size_t frame, bool *is_folded)
{
    size_t place = frame / d->segments, chunk = (place + 1) / 2;

    *is_folded = place > 0 && (place % 2 == 0 || chunk == d->chunks);
    if (*is_folded)
        chunk = chunk == d->chunks ? chunk - 1 : place / 2 - 1;
    return chunk * d->segments + frame % d->segments;
}

static uint8_t *window(const struct reduction *d, uint32_t host, size_t k)
{
    size_t room = dt_least(d->part, DT_FLOW_SEGMENT);

    return d->t->lanes->scratch + (host * WINDOW + k % WINDOW) * room;
}

static struct iovec frame(void *arg, const struct dt_flow *f, size_t number)
{
    const struct reduction *d = arg;
    uint32_t me = d->t->lanes->me;
    bool is_folded;
    size_t k = segment_of(d, number, &is_folded);
    struct iovec v = segment(d, is_folded == f->out ? me : f->slot, k);

    if (!f->out && !is_folded)
        v.iov_base = window(d, f->slot, k);
    return v;
}

static bool may_move(const struct reduction *d, const struct dt_flow *f, size_t number)
{
    bool is_folded;
    size_t k = segment_of(d, number, &is_folded);

    if (f->out)
        return is_folded ? k < d->folded : k / d->segments < d->rounds;
    return is_folded || k < d->folded + WINDOW;
}

static size_t ready(void *arg, const struct dt_flow *f)
{
    size_t n = f->done, most = dt_least(f->frames, n + DT_FLOW_BATCH);

    while (n < most && may_move(arg, f, n))
        n++;
    return n;
}

/* Whether segment k, folded or to be folded, has come from all other hosts. */
static bool has_come(const struct reduction *d, size_t k, bool is_folded)
{
    size_t number = frame_of(d, k, is_folded);

    for (size_t i = 0; i < d->n_flows; i++) {
        if (!d->flows[i].out && d->flows[i].done <= number)
            return false;
    }
    return true;
}

static void fold_what_came(struct reduction *d)
{
    const struct dt_lanes *l = d->t->lanes;

    while (d->folded < dt_least(d->rounds, d->chunks) * d->segments &&
           has_come(d, d->folded, false)) {
        size_t k = d->folded++;
        struct iovec own = segment(d, l->me, k);
        const void *src[l->n];

        for (uint32_t i = 0; i < l->n; i++)
            src[i] = i == l->me ? own.iov_base : window(d, i, k);
        dt_lanes_fold(d->call, own.iov_base, src, l->n, own.iov_len, d->divisor);
    }
}

static void moved(void *arg, const struct dt_flow *f)
{
    if (!f->out)
        fold_what_came(arg);
}

static bool is_reduced(const struct reduction *d, size_t chunk)
{
    size_t last = (chunk + 1) * d->segments - 1;

    return last < d->folded && has_come(d, last, true);
}

/* Half a round, if that is possible without waiting. */
static enum dt_flow_work work(void *arg)
{
    struct reduction *d = arg;
    struct dt_shm *s = d->t->shm;
    size_t i = d->rounds;

    if (i == rounds_of(d) || (i >= BEHIND && !is_reduced(d, i - BEHIND)))
        return DT_FLOW_NO_WORK;
    if (!d->staged) {
        if (!dt_round_is_free(s))
            return DT_FLOW_WORK_WAITS;
        dt_round_join(s, round_bytes(d));
        stage(d);
        dt_round_publish(s, DT_IN);
        d->staged = true;
        return DT_FLOW_WORKED;
    }
    if (!dt_round_has_come(s, DT_IN))
        return DT_FLOW_WORK_WAITS;
    end_round(d);
    fold_what_came(d);
    return DT_FLOW_WORKED;
}

static dt_result_t among_hosts(struct reduction *d)
{
    struct dt_lanes *l = d->t->lanes;
    struct dt_flow flows[2 * (l->n - 1)];
    struct dt_traffic t = { .call = d->call,
                            .flows = flows,
                            .n = sizeof flows / sizeof *flows,
                            .batch = DT_FLOW_BATCH,
                            .frame = frame,
                            .ready = ready,
                            .moved = moved,
                            .work = work,
                            .arg = d };
    dt_result_t r = dt_lanes_scratch(l, l->n * WINDOW * dt_least(d->part, DT_FLOW_SEGMENT));

    dt_lanes_flows_with_all(l, flows, 2 * d->chunks * d->segments);
    d->flows = flows;
    d->n_flows = t.n;
    return r == DT_OK ? dt_lanes_run(l, &t) : r;
}

/* ---- both ---- */

void dt_twolevel_settle(struct dt_twolevel *t, uint32_t least_ranks, uint32_t most_ranks)
{
    size_t hosts = t->lanes->n, lanes;

    t->round = dt_hostshm_room(most_ranks) / 4;
    lanes = dt_least(t->round / (hosts * PART_LEAST), LANES_MOST + 1);
    lanes = dt_least(lanes ? lanes - 1 : 0, least_ranks);
    t->width = hosts <= HOSTS_MOST ? (uint32_t)lanes : 0;
}

static void cut(struct reduction *d)
{
    size_t width = d->t->width, grain = width * d->t->lanes->n * ALIGN;
    size_t most = d->t->round * width / (width + 1) / grain * grain;

    d->chunks = (d->bytes + most - 1) / most;
    if (d->chunks < CHUNKS_LEAST)
        d->chunks = CHUNKS_LEAST;
    d->chunk = up((d->bytes + d->chunks - 1) / d->chunks, grain);
    d->chunks = (d->bytes + d->chunk - 1) / d->chunk;
    d->slice = d->chunk / width;
    d->part = d->slice / d->t->lanes->n;
    d->segments = dt_flow_segments(d->part);
}

dt_result_t dt_twolevel_all_reduce(const struct dt_twolevel *t, const struct dt_call *call,
                                   const void *in, void *out, int divisor)
{
    struct reduction d = { .t = t,
                           .call = call,
                           .in = in,
                           .out = out,
                           .bytes = call->count * dt_dtype_size((dt_dtype_t)call->dtype),
                           .divisor = divisor };
    dt_result_t r;

    d.huge = d.bytes >= t->shm->tuning->shm_huge;
    cut(&d);
    r = make_round(&d);
    if (r == DT_OK && is_lane(&d))
        r = among_hosts(&d);
    while (r == DT_OK && d.rounds < rounds_of(&d))
        r = make_round(&d);
    return r;
}
