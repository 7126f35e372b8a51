#include "runtime/coll/hierarchical.h"

#include "runtime/base/copy.h"
#include "runtime/base/least.h"
#include "runtime/coll/leader_allreduce.h"
#include "runtime/coll/width.h"
#include "runtime/kernels/dtype.h"
#include "runtime/shm/call_match.h"
#include "runtime/shm/rounds.h"
#include "runtime/shm/stream.h"

enum {
    BEHIND = 3, /* rounds between reducing a chunk and distributing its result */
    KEPT = 16,  /* chunks that have memory of their own, if the result has none for them; more than
                   BEHIND */
    WINDOW = 8, /* frames of each peer that wait to be reduced */
    MOST_COLLECTED = 256 * 1024, /* bytes */
};

/* Round i within a host reduces chunk i there and distributes the result of chunk i - BEHIND. A
 * rank that is not a leader only makes rounds. A leader makes them whenever it can while frames
 * move: the first one before any frame moves, and the last ones after all have. */
struct folding {
    const struct dt_hierarchical *t;
    const struct dt_call *call;
    const struct dt_hierarchical_terms *terms;
    struct dt_layout cut;
    const uint8_t *in;
    uint8_t *out;
    bool is_lane;
    bool straight; /* the host has one rank, whose data are the host's sums */
    bool in_place; /* results, and the host's sums before them, are in out at their final places */
    bool spreads;  /* ranks of this host take results from its leaders */
    bool huge;
    uint8_t *kept; /* otherwise they are here, KEPT chunks */
    size_t rounds; /* that this rank has completed */
    bool staged;   /* and its data for the next one are staged */
    size_t folded; /* segments that this host has reduced */
    struct dt_flow *flows;
    size_t n_flows;
};

/* ---- where things are ---- */

static uint32_t me_of(const struct folding *d)
{
    return d->t->shm->me;
}

static uint8_t *kept_at(const struct folding *d, size_t chunk, size_t at)
{
    return d->kept + chunk % KEPT * d->cut.slice + at;
}

/* Whether the part that the leader reduces for its own host is its own block. */
static bool takes_own(const struct folding *d, size_t chunk)
{
    return d->cut.whom == DT_LAYOUT_FOR_EACH &&
           dt_layout_taker(&d->cut, chunk, me_of(d)) == me_of(d);
}

/* This host's sums of a run. */
static uint8_t *sums_of(const struct folding *d, size_t chunk, uint32_t run)
{
    size_t at = dt_layout_run(&d->cut, chunk, me_of(d), run).at;

    return d->in_place ? d->out + at : kept_at(d, chunk, dt_layout_run_at(&d->cut, run));
}

/* This host's sums for the host that reduces the part. */
static const uint8_t *sums_for(const struct folding *d, size_t chunk, uint32_t host)
{
    size_t at = dt_layout_part(&d->cut, chunk, me_of(d), host).at;

    if (d->straight)
        return d->in + at;
    return d->in_place ? d->out + at : kept_at(d, chunk, dt_layout_part_at(&d->cut, host));
}

/* The result of a part, from the host that reduced it. */
static uint8_t *result_of(const struct folding *d, size_t chunk, uint32_t host)
{
    size_t at = dt_layout_part(&d->cut, chunk, me_of(d), host).at;

    if (takes_own(d, chunk))
        return d->out + dt_layout_piece_at(&d->cut, chunk);
    return d->in_place ? d->out + at : kept_at(d, chunk, dt_layout_part_at(&d->cut, host));
}

static struct iovec segment(const struct folding *d, const uint8_t *part, size_t k, uint32_t host)
{
    size_t chunk = k / d->cut.segments;
    size_t bytes = dt_layout_part(&d->cut, chunk, me_of(d), host).bytes;

    return dt_flow_segment(part, bytes, k % d->cut.segments);
}

/* Segment k of a host's parts, chunk after chunk. */
static struct iovec sum_segment(const struct folding *d, size_t k, uint32_t host)
{
    return segment(d, sums_for(d, k / d->cut.segments, host), k, host);
}

static struct iovec result_segment(const struct folding *d, size_t k, uint32_t host)
{
    return segment(d, result_of(d, k / d->cut.segments, host), k, host);
}

/* ---- within the host ---- */

static size_t rounds_of(const struct folding *d)
{
    return d->cut.chunks + (d->spreads ? BEHIND : 0);
}

static size_t round_bytes(const struct folding *d)
{
    return d->cut.chunk + d->cut.slice;
}

/* Where a leader's run is in the staging area of every rank. */
static uint8_t *staging(const struct folding *d, uint32_t rank, uint32_t lane, uint32_t run)
{
    return dt_round_staging(d->t->shm, rank) + lane * d->cut.slice + dt_layout_run_at(&d->cut, run);
}

static void stage_sums(const struct folding *d)
{
    struct dt_shm *s = d->t->shm;

    for (uint32_t lane = 0; lane < d->cut.width; lane++) {
        for (uint32_t run = 0; lane != s->me && run < dt_layout_runs(&d->cut); run++) {
            struct dt_span span = dt_layout_run(&d->cut, d->rounds, lane, run);

            dt_copy(staging(d, s->me, lane, run), d->in + span.at, span.bytes);
        }
    }
}

/* How much of a leader's share the host's ranks take. */
static size_t taken_bytes(const struct folding *d, size_t chunk, uint32_t lane)
{
    if (d->cut.whom == DT_LAYOUT_FOR_EACH)
        return dt_layout_run(&d->cut, chunk, lane, d->t->leaders->me).bytes;
    return dt_layout_run(&d->cut, chunk, lane, 0).bytes;
}

static void stage_result(const struct folding *d)
{
    struct dt_shm *s = d->t->shm;
    size_t chunk = d->rounds - BEHIND;
    uint32_t host = d->cut.whom == DT_LAYOUT_FOR_EACH ? d->t->leaders->me : 0;

    if (!takes_own(d, chunk))
        dt_copy(dt_round_staging(s, s->me) + d->cut.chunk, result_of(d, chunk, host),
                taken_bytes(d, chunk, s->me));
}

/* Stages the rest of this rank's chunk, which others reduce. A leader then also stages its share of
 * the result. */
static void stage(const struct folding *d)
{
    if (d->rounds < d->cut.chunks)
        stage_sums(d);
    if (d->spreads && d->rounds >= BEHIND && d->is_lane)
        stage_result(d);
}

static void fold_slice(const struct folding *d)
{
    const struct dt_shm *s = d->t->shm;
    const void *src[s->n];

    for (uint32_t run = 0; run < dt_layout_runs(&d->cut); run++) {
        struct dt_span own = dt_layout_run(&d->cut, d->rounds, s->me, run);

        for (uint32_t i = 0; i < s->n; i++)
            src[i] = i == s->me ? d->in + own.at : staging(d, i, s->me, run);
        dt_leaders_fold(d->call, sums_of(d, d->rounds, run), src, s->n, own.bytes,
                        d->terms->host_divisor);
    }
}

static void take(const struct folding *d, size_t at, uint32_t lane)
{
    const struct dt_shm *s = d->t->shm;
    const uint8_t *from = dt_round_staging(s, lane) + d->cut.chunk;
    size_t bytes = taken_bytes(d, d->rounds - BEHIND, lane);

    if (lane == s->me || bytes == 0)
        return;
    if (d->huge)
        dt_stream_past_caches(d->out + at, from, bytes);
    else
        dt_copy(d->out + at, from, bytes);
}

/* Copies the other leaders' results. */
static void spread(const struct folding *d)
{
    const struct dt_layout *c = &d->cut;
    size_t chunk = d->rounds - BEHIND;

    for (uint32_t i = 0; i < c->width; i++) {
        uint32_t lane = (me_of(d) + i) % c->width;

        if (c->whom == DT_LAYOUT_FOR_EACH && dt_layout_taker(c, chunk, lane) == me_of(d))
            take(d, dt_layout_piece_at(c, chunk), lane);
        else if (c->whom == DT_LAYOUT_FOR_ALL ||
                 (c->whom == DT_LAYOUT_FOR_ROOT && d->terms->is_root))
            take(d, dt_layout_run(c, chunk, lane, 0).at, lane);
    }
}

static void fold_what_came(struct folding *d);

/* All ranks have staged their data. */
static void end_round(struct folding *d)
{
    if (d->rounds < d->cut.chunks && d->is_lane && !d->straight)
        fold_slice(d);
    if (d->spreads && d->rounds >= BEHIND)
        spread(d);
    dt_round_publish(d->t->shm, DT_LEFT);
    d->rounds++;
    d->staged = false;
    if (d->is_lane)
        fold_what_came(d);
}

/* Makes the next round, or the rest of it. Waits for the other ranks. */
static dt_result_t make_round(struct folding *d)
{
    struct dt_shm *s = d->t->shm;
    dt_result_t r = DT_OK;

    if (!d->staged) {
        r = dt_round_begin(s, round_bytes(d));
        if (r != DT_OK)
            return r;
        stage(d);
        if (d->rounds == 0)
            dt_call_match_post(s, d->call, NULL, 0);
        r = dt_call_match(s, d->rounds == 0);
    } else {
        r = dt_round_await_all(s, DT_IN);
    }
    if (r == DT_OK)
        end_round(d);
    return r;
}

/* ---- between the hosts ---- */

static unsigned series_of(const struct folding *d, const struct dt_flow *f)
{
    return dt_layout_series(&d->cut, f->out ? f->slot : d->t->leaders->me);
}

static uint8_t *window(const struct folding *d, uint32_t host, size_t k)
{
    size_t room = dt_least(d->cut.part, DT_FLOW_SEGMENT);

    return d->t->leaders->scratch + (host * WINDOW + k % WINDOW) * room;
}

static struct iovec frame(void *arg, const struct dt_flow *f, size_t number)
{
    const struct folding *d = arg;
    uint32_t me = d->t->leaders->me;
    unsigned series = series_of(d, f);
    bool is_folded;
    size_t k = dt_layout_segment_of(&d->cut, series, number, &is_folded);
    struct iovec v = { 0 };

    if (!series)
        return v;
    if (is_folded)
        return result_segment(d, k, f->out ? me : f->slot);
    v = sum_segment(d, k, f->out ? f->slot : me);
    if (!f->out)
        v.iov_base = window(d, f->slot, k);
    return v;
}

static bool may_move(const struct folding *d, const struct dt_flow *f, size_t number)
{
    unsigned series = series_of(d, f);
    bool is_folded;
    size_t k = dt_layout_segment_of(&d->cut, series, number, &is_folded);

    if (!series)
        return true;
    if (f->out)
        return is_folded ? k < d->folded : k / d->cut.segments < d->rounds;
    return is_folded || k < d->folded + WINDOW;
}

static size_t ready(void *arg, const struct dt_flow *f)
{
    size_t n = f->done, most = dt_least(f->frames, n + DT_FLOW_BATCH);

    while (n < most && may_move(arg, f, n))
        n++;
    return n;
}

/* Whether segment k, reduced or not, has moved on all flows of a direction that contain it. */
static bool is_through(const struct folding *d, size_t k, bool is_folded, bool out)
{
    for (size_t i = 0; i < d->n_flows; i++) {
        const struct dt_flow *f = &d->flows[i];
        unsigned series = series_of(d, f);

        if (f->out == out && (series & (is_folded ? DT_LAYOUT_FOLDED : DT_LAYOUT_RAW)) &&
            f->done <= dt_layout_frame_of(&d->cut, series, k, is_folded))
            return false;
    }
    return true;
}

static void fold_segment(const struct folding *d, size_t k)
{
    const struct dt_leaders *l = d->t->leaders;
    size_t chunk = k / d->cut.segments;
    struct dt_span part = dt_layout_part(&d->cut, chunk, me_of(d), l->me);
    struct iovec own = sum_segment(d, k, l->me);
    struct dt_span of = { part.at + k % d->cut.segments * DT_FLOW_SEGMENT, own.iov_len };
    uint8_t *to = result_segment(d, k, l->me).iov_base;
    const void *src[l->n];

    for (uint32_t i = 0; i < l->n; i++)
        src[i] = i == l->me ? own.iov_base : window(d, i, k);
    if (d->terms->round)
        dt_leaders_fold_round(l, d->call, to, src, of, dt_layout_whole(&d->cut), d->terms->divisor);
    else
        dt_leaders_fold(d->call, to, src, l->n, of.bytes, d->terms->divisor);
}

static void fold_what_came(struct folding *d)
{
    while (d->folded < dt_least(d->rounds, d->cut.chunks) * d->cut.segments &&
           is_through(d, d->folded, false, false))
        fold_segment(d, d->folded++);
}

static void moved(void *arg, const struct dt_flow *f)
{
    if (!f->out)
        fold_what_came(arg);
}

static bool is_reduced(const struct folding *d, size_t chunk)
{
    size_t last = (chunk + 1) * d->cut.segments - 1;

    return last < d->folded && is_through(d, last, true, false);
}

/* Whether nothing of a chunk remains to be sent or reduced. */
static bool is_gone(const struct folding *d, size_t chunk)
{
    size_t last = (chunk + 1) * d->cut.segments - 1;

    return is_reduced(d, chunk) && is_through(d, last, false, true) &&
           is_through(d, last, true, true);
}

static bool may_begin_round(const struct folding *d)
{
    size_t i = d->rounds;

    if (i == rounds_of(d) || (d->spreads && i >= BEHIND && !is_reduced(d, i - BEHIND)))
        return false;
    return d->in_place || i < KEPT || i >= d->cut.chunks || is_gone(d, i - KEPT);
}

/* Half a round, if it needs no wait. */
static enum dt_flow_work work(void *arg)
{
    struct folding *d = arg;
    struct dt_shm *s = d->t->shm;

    if (!d->staged) {
        if (!may_begin_round(d))
            return DT_FLOW_NO_WORK;
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
    return DT_FLOW_WORKED;
}

static dt_result_t prepare(struct folding *d)
{
    struct dt_leaders *l = d->t->leaders;
    size_t windows = l->n * WINDOW * dt_least(d->cut.part, DT_FLOW_SEGMENT);
    size_t kept = d->in_place ? 0 : KEPT * d->cut.slice;
    struct dt_traffic all = { 0 };
    dt_result_t r = dt_leaders_scratch(l, windows + kept);

    if (r == DT_OK)
        r = dt_leaders_flows_with_all(l, 0, &all);
    if (r != DT_OK)
        return r;
    d->kept = kept ? l->scratch + windows : NULL;
    d->flows = all.flows;
    d->n_flows = all.n;
    for (size_t i = 0; i < d->n_flows; i++) {
        struct dt_flow *f = &d->flows[i];

        f->frames = dt_layout_frames(&d->cut, f->out ? f->slot : l->me);
    }
    return DT_OK;
}

static dt_result_t among_hosts(struct folding *d)
{
    struct dt_traffic t = { .call = d->call,
                            .flows = d->flows,
                            .n = d->n_flows,
                            .batch = DT_FLOW_BATCH,
                            .frame = frame,
                            .ready = ready,
                            .moved = moved,
                            .work = work,
                            .arg = d };

    return dt_leaders_run(d->t->leaders, &t);
}

/* ---- both ---- */

void dt_hierarchical_settle(struct dt_hierarchical *t)
{
    size_t hosts = t->leaders->n, least_ranks = SIZE_MAX, room = SIZE_MAX;

    for (uint32_t host = 0; host < hosts; host++) {
        uint32_t ranks = dt_roster_count(t->roster, host);

        least_ranks = dt_least(least_ranks, ranks);
        t->most = ranks > t->most ? ranks : t->most;
        room = dt_least(room, dt_hostshm_room(ranks));
    }
    t->round = room / DT_HOSTSHM_ROUNDS;
    t->width = dt_width(hosts, least_ranks, t->round);
    t->for_few = hosts <= DT_MESH_FEW;
}

/* Between two hosts no other algorithm sends less to root's host, and for small data none is
 * faster. */
static bool collects(const struct dt_hierarchical *t, size_t bytes)
{
    return t->leaders->n == 2 || bytes <= MOST_COLLECTED;
}

static void cut(struct folding *d)
{
    const struct dt_hierarchical *t = d->t;
    size_t bytes = d->call->count * dt_dtype_size((dt_dtype_t)d->call->dtype);

    d->cut =
        (struct dt_layout){ .whom = d->terms->whom,
                            .hosts = t->leaders->n,
                            .width = t->width,
                            .home = d->terms->home,
                            .collects = d->terms->whom == DT_LAYOUT_FOR_ROOT && collects(t, bytes),
                            .roster = t->roster,
                            .bytes = bytes };
    dt_layout_make(&d->cut, t->round);
    d->huge = dt_layout_whole(&d->cut) >= t->shm->tuning->shm_huge;
}

/* If a host has one rank, it sends directly from its buffer, unless the data must be divided first
 * or results are to be stored there. */
static void settle_places(struct folding *d)
{
    const struct dt_shm *s = d->t->shm;
    const struct dt_hierarchical_terms *terms = d->terms;
    bool for_root = terms->whom == DT_LAYOUT_FOR_ROOT;

    d->is_lane = s->me < d->cut.width;
    d->in_place = terms->whom == DT_LAYOUT_FOR_ALL || (for_root && terms->is_root);
    d->straight = s->n == 1 && terms->host_divisor == 1 && (for_root || d->in != d->out);
    d->spreads = s->n > 1 &&
                 (for_root ? terms->home == d->t->leaders->me : d->in_place || s->n > d->cut.width);
}

dt_result_t dt_hierarchical_fold(const struct dt_hierarchical *t, const struct dt_call *call,
                                 const void *in, void *out,
                                 const struct dt_hierarchical_terms *terms)
{
    struct folding d = { .t = t, .call = call, .terms = terms, .in = in, .out = out };
    dt_result_t r = DT_OK;

    if (terms->whom == DT_LAYOUT_FOR_ALL)
        t->leaders->algorithm = "tcp-lanes";
    cut(&d);
    settle_places(&d);
    if (d.is_lane)
        r = prepare(&d);
    if (r == DT_OK)
        r = make_round(&d);
    if (r == DT_OK && d.is_lane)
        r = among_hosts(&d);
    while (r == DT_OK && d.rounds < rounds_of(&d))
        r = make_round(&d);
    if (r == DT_OK && !d.spreads && t->shm->n > d.cut.width)
        r = dt_shm_share(t->shm, NULL, 0,
                         0); /* a rank that is not a leader has not heard from the other hosts */
    if (d.huge)
        dt_stream_settle();
    return r;
}
