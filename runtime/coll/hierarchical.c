#include "runtime/coll/hierarchical.h"

#include "runtime/base/copy.h"
#include "runtime/base/min.h"
#include "runtime/coll/leader_allreduce.h"
#include "runtime/kernels/dtype.h"
#include "runtime/shm/call_match.h"
#include "runtime/shm/rounds.h"
#include "runtime/shm/stream.h"

enum {
    BEHIND = 3, /* rounds between reducing a chunk and distributing its result */
    KEPT = 16,  /* chunks whose sums are kept in scratch memory, if out has no room for them; must
                   be more than BEHIND */
    WINDOW = 8, /* frames of each peer that wait to be reduced */
    MOST_COLLECTED = 256 * 1024, /* bytes up to which root's host reduces all for root */
};

/* Round i within a host reduces chunk i there and distributes the result of chunk i - BEHIND. A
 * rank that is not a leader only makes rounds. A leader makes them whenever it can while frames
 * move: the first one before any frame moves, and the last ones after all have. */
struct hierarchical {
    const struct dt_hierarchical *t;
    const struct dt_call *call;
    const struct dt_hierarchical_result *result;
    struct dt_layout layout;
    const uint8_t *in;
    uint8_t *out;
    bool is_leader;
    bool sends_in; /* the host has one rank, whose data are the host's sums */
    bool in_place; /* results, and the host's sums before them, are in out at their final places */
    bool distributes; /* ranks of this host take results from its leaders */
    bool huge;
    uint8_t *kept; /* without in_place: results and sums of the last KEPT chunks */
    size_t rounds; /* that this rank has completed */
    bool staged;   /* this rank's data for the next round are staged */
    size_t folded; /* segments that this host has reduced */
    struct dt_flow *flows;
    size_t n_flows;
};

/* ---- where things are ---- */

static uint32_t own_local_rank(const struct hierarchical *d)
{
    return d->t->shm->me;
}

static uint8_t *kept_place(const struct hierarchical *d, size_t chunk, size_t at)
{
    return d->kept + chunk % KEPT * d->layout.share + at;
}

/* Whether the block that the leader reduces for its own host is its own block. */
static bool result_is_own_block(const struct hierarchical *d, size_t chunk)
{
    return d->layout.recipients == DT_LAYOUT_FOR_EACH &&
           dt_layout_owner(&d->layout, chunk, own_local_rank(d)) == own_local_rank(d);
}

/* This host's sums of a range. */
static uint8_t *sums_of(const struct hierarchical *d, size_t chunk, uint32_t range)
{
    size_t at = dt_layout_range(&d->layout, chunk, own_local_rank(d), range).at;

    return d->in_place ? d->out + at : kept_place(d, chunk, dt_layout_range_at(&d->layout, range));
}

/* This host's sums for the host that reduces the block. */
static const uint8_t *sums_for(const struct hierarchical *d, size_t chunk, uint32_t host)
{
    size_t at = dt_layout_block(&d->layout, chunk, own_local_rank(d), host).at;

    if (d->sends_in)
        return d->in + at;
    return d->in_place ? d->out + at : kept_place(d, chunk, dt_layout_block_at(&d->layout, host));
}

/* The result of a block, from the host that reduced it. */
static uint8_t *result_of(const struct hierarchical *d, size_t chunk, uint32_t host)
{
    size_t at = dt_layout_block(&d->layout, chunk, own_local_rank(d), host).at;

    if (result_is_own_block(d, chunk))
        return d->out + dt_layout_offset(&d->layout, chunk);
    return d->in_place ? d->out + at : kept_place(d, chunk, dt_layout_block_at(&d->layout, host));
}

static struct iovec segment(const struct hierarchical *d, const uint8_t *block, size_t k,
                            uint32_t host)
{
    size_t chunk = k / d->layout.segments;
    size_t bytes = dt_layout_block(&d->layout, chunk, own_local_rank(d), host).bytes;

    return dt_flow_segment(block, bytes, k % d->layout.segments);
}

/* Segment k of a host's blocks, chunk after chunk. */
static struct iovec sum_segment(const struct hierarchical *d, size_t k, uint32_t host)
{
    return segment(d, sums_for(d, k / d->layout.segments, host), k, host);
}

static struct iovec result_segment(const struct hierarchical *d, size_t k, uint32_t host)
{
    return segment(d, result_of(d, k / d->layout.segments, host), k, host);
}

/* ---- within the host ---- */

static size_t rounds_of(const struct hierarchical *d)
{
    return d->layout.chunks + (d->distributes ? BEHIND : 0);
}

static size_t round_bytes(const struct hierarchical *d)
{
    return d->layout.chunk + d->layout.share;
}

/* Where a leader's range is in the staging area of every rank. */
static uint8_t *staging_place(const struct hierarchical *d, uint32_t rank, uint32_t leader,
                              uint32_t range)
{
    return dt_round_staging(d->t->shm, rank) + leader * d->layout.share +
           dt_layout_range_at(&d->layout, range);
}

static void stage_input(const struct hierarchical *d)
{
    struct dt_shm *s = d->t->shm;

    for (uint32_t leader = 0; leader < d->layout.n_leaders; leader++) {
        if (leader == s->me)
            continue;
        for (uint32_t range = 0; range < dt_layout_ranges(&d->layout); range++) {
            struct dt_range span = dt_layout_range(&d->layout, d->rounds, leader, range);

            dt_copy(staging_place(d, s->me, leader, range), d->in + span.at, span.bytes);
        }
    }
}

/* How much of a leader's share the host's ranks take. */
static size_t result_bytes(const struct hierarchical *d, size_t chunk, uint32_t leader)
{
    if (d->layout.recipients == DT_LAYOUT_FOR_EACH)
        return dt_layout_range(&d->layout, chunk, leader, d->t->leaders->me).bytes;
    return dt_layout_range(&d->layout, chunk, leader, 0).bytes;
}

static void stage_result(const struct hierarchical *d)
{
    struct dt_shm *s = d->t->shm;
    size_t chunk = d->rounds - BEHIND;
    uint32_t host = d->layout.recipients == DT_LAYOUT_FOR_EACH ? d->t->leaders->me : 0;

    if (!result_is_own_block(d, chunk))
        dt_copy(dt_round_staging(s, s->me) + d->layout.chunk, result_of(d, chunk, host),
                result_bytes(d, chunk, s->me));
}

/* Stages the rest of this rank's chunk, which others reduce. A leader then also stages its share of
 * the result. */
static void stage(const struct hierarchical *d)
{
    if (d->rounds < d->layout.chunks)
        stage_input(d);
    if (d->distributes && d->rounds >= BEHIND && d->is_leader)
        stage_result(d);
}

static void fold_share(const struct hierarchical *d)
{
    const struct dt_shm *s = d->t->shm;
    const void *src[s->n];

    for (uint32_t range = 0; range < dt_layout_ranges(&d->layout); range++) {
        struct dt_range own = dt_layout_range(&d->layout, d->rounds, s->me, range);

        for (uint32_t i = 0; i < s->n; i++)
            src[i] = i == s->me ? d->in + own.at : staging_place(d, i, s->me, range);
        dt_leaders_fold(d->call, sums_of(d, d->rounds, range), src, s->n, own.bytes,
                        d->result->host_divisor);
    }
}

static void copy_share(const struct hierarchical *d, size_t at, uint32_t leader)
{
    const struct dt_shm *s = d->t->shm;
    const uint8_t *from = dt_round_staging(s, leader) + d->layout.chunk;
    size_t bytes = result_bytes(d, d->rounds - BEHIND, leader);

    if (leader == s->me || bytes == 0)
        return;
    if (d->huge)
        dt_stream_past_caches(d->out + at, from, bytes);
    else
        dt_copy(d->out + at, from, bytes);
}

/* Copies the other leaders' results. Ranks begin with different leaders, to spread the load. */
static void copy_shares(const struct hierarchical *d)
{
    const struct dt_layout *layout = &d->layout;
    size_t chunk = d->rounds - BEHIND;

    for (uint32_t i = 0; i < layout->n_leaders; i++) {
        uint32_t leader = (own_local_rank(d) + i) % layout->n_leaders;

        if (layout->recipients == DT_LAYOUT_FOR_EACH &&
            dt_layout_owner(layout, chunk, leader) == own_local_rank(d))
            copy_share(d, dt_layout_offset(layout, chunk), leader);
        else if (layout->recipients == DT_LAYOUT_FOR_ALL ||
                 (layout->recipients == DT_LAYOUT_FOR_ROOT && d->result->is_root))
            copy_share(d, dt_layout_range(layout, chunk, leader, 0).at, leader);
    }
}

static void fold_arrived(struct hierarchical *d);

/* All ranks have staged their data. */
static void end_round(struct hierarchical *d)
{
    if (d->rounds < d->layout.chunks && d->is_leader && !d->sends_in)
        fold_share(d);
    if (d->distributes && d->rounds >= BEHIND)
        copy_shares(d);
    dt_round_publish(d->t->shm, DT_LEFT);
    d->rounds++;
    d->staged = false;
    if (d->is_leader)
        fold_arrived(d);
}

/* Makes the next round, or the rest of it. Waits for the other ranks. */
static dt_result_t make_round(struct hierarchical *d)
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

static unsigned series_of(const struct hierarchical *d, const struct dt_flow *f)
{
    return dt_layout_series(&d->layout, f->out ? f->slot : d->t->leaders->me);
}

static uint8_t *window_slot(const struct hierarchical *d, uint32_t host, size_t k)
{
    size_t room = dt_min(d->layout.block, DT_FLOW_SEGMENT);

    return d->t->leaders->scratch + (host * WINDOW + k % WINDOW) * room;
}

static struct iovec hierarchical_frame(void *arg, const struct dt_flow *f, size_t number)
{
    const struct hierarchical *d = arg;
    uint32_t me = d->t->leaders->me;
    unsigned series = series_of(d, f);
    bool is_folded;
    size_t k = dt_layout_segment_of(&d->layout, series, number, &is_folded);
    struct iovec v = { 0 };

    if (!series)
        return v;
    if (is_folded)
        return result_segment(d, k, f->out ? me : f->slot);
    v = sum_segment(d, k, f->out ? f->slot : me);
    if (!f->out)
        v.iov_base = window_slot(d, f->slot, k);
    return v;
}

static bool may_move(const struct hierarchical *d, const struct dt_flow *f, size_t number)
{
    unsigned series = series_of(d, f);
    bool is_folded;
    size_t k = dt_layout_segment_of(&d->layout, series, number, &is_folded);

    if (!series)
        return true;
    if (f->out)
        return is_folded ? k < d->folded : k / d->layout.segments < d->rounds;
    return is_folded || k < d->folded + WINDOW;
}

static size_t hierarchical_ready(void *arg, const struct dt_flow *f)
{
    size_t n = f->done, most = dt_min(f->frames, n + DT_FLOW_BATCH);

    while (n < most && may_move(arg, f, n))
        n++;
    return n;
}

/* Whether segment k, reduced or not, has moved on all flows of a direction that contain it. */
static bool has_moved(const struct hierarchical *d, size_t k, bool is_folded, bool out)
{
    for (size_t i = 0; i < d->n_flows; i++) {
        const struct dt_flow *f = &d->flows[i];
        unsigned series = series_of(d, f);

        if (f->out == out && (series & (is_folded ? DT_LAYOUT_FOLDED : DT_LAYOUT_RAW)) &&
            f->done <= dt_layout_frame_of(&d->layout, series, k, is_folded))
            return false;
    }
    return true;
}

static void fold_segment(const struct hierarchical *d, size_t k)
{
    const struct dt_leaders *l = d->t->leaders;
    size_t chunk = k / d->layout.segments;
    struct dt_range block = dt_layout_block(&d->layout, chunk, own_local_rank(d), l->me);
    struct iovec own = sum_segment(d, k, l->me);
    struct dt_range range = { block.at + k % d->layout.segments * DT_FLOW_SEGMENT, own.iov_len };
    uint8_t *to = result_segment(d, k, l->me).iov_base;
    const void *src[l->n];

    for (uint32_t i = 0; i < l->n; i++)
        src[i] = i == l->me ? own.iov_base : window_slot(d, i, k);
    if (d->result->in_ring_order)
        dt_leaders_fold_in_ring_order(l, d->call, to, src, range, dt_layout_whole(&d->layout),
                                      d->result->divisor);
    else
        dt_leaders_fold(d->call, to, src, l->n, range.bytes, d->result->divisor);
}

static void fold_arrived(struct hierarchical *d)
{
    while (d->folded < dt_min(d->rounds, d->layout.chunks) * d->layout.segments &&
           has_moved(d, d->folded, false, false))
        fold_segment(d, d->folded++);
}

static void hierarchical_moved(void *arg, const struct dt_flow *f)
{
    if (!f->out)
        fold_arrived(arg);
}

static bool is_reduced(const struct hierarchical *d, size_t chunk)
{
    size_t last = (chunk + 1) * d->layout.segments - 1;

    return last < d->folded && has_moved(d, last, true, false);
}

/* Whether nothing of a chunk remains to be sent or reduced. */
static bool is_chunk_done(const struct hierarchical *d, size_t chunk)
{
    size_t last = (chunk + 1) * d->layout.segments - 1;

    return is_reduced(d, chunk) && has_moved(d, last, false, true) &&
           has_moved(d, last, true, true);
}

static bool may_begin_round(const struct hierarchical *d)
{
    size_t i = d->rounds;

    if (i == rounds_of(d) || (d->distributes && i >= BEHIND && !is_reduced(d, i - BEHIND)))
        return false;
    return d->in_place || i < KEPT || i >= d->layout.chunks || is_chunk_done(d, i - KEPT);
}

/* Stages the next round's data, or ends that round, if that needs no wait. */
static enum dt_flow_work hierarchical_work(void *arg)
{
    struct hierarchical *d = arg;
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
    if (!dt_round_all_published(s, DT_IN))
        return DT_FLOW_WORK_WAITS;
    end_round(d);
    return DT_FLOW_WORKED;
}

static dt_result_t make_hierarchical_flows(struct hierarchical *d)
{
    struct dt_leaders *l = d->t->leaders;
    size_t windows = l->n * WINDOW * dt_min(d->layout.block, DT_FLOW_SEGMENT);
    size_t kept = d->in_place ? 0 : KEPT * d->layout.share;
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

        f->frames = dt_layout_frames(&d->layout, f->out ? f->slot : l->me);
    }
    return DT_OK;
}

static dt_result_t run_among_hosts(struct hierarchical *d)
{
    struct dt_traffic t = { .call = d->call,
                            .flows = d->flows,
                            .n = d->n_flows,
                            .batch = DT_FLOW_BATCH,
                            .frame = hierarchical_frame,
                            .ready = hierarchical_ready,
                            .moved = hierarchical_moved,
                            .work = hierarchical_work,
                            .arg = d };

    return dt_leaders_run(d->t->leaders, &t);
}

/* ---- both ---- */

void dt_hierarchical_init(struct dt_hierarchical *t)
{
    size_t hosts = t->leaders->n, least_ranks = SIZE_MAX, room = SIZE_MAX;

    for (uint32_t host = 0; host < hosts; host++) {
        uint32_t ranks = dt_host_ranks_count(t->host_ranks, host);

        least_ranks = dt_min(least_ranks, ranks);
        t->most_ranks = ranks > t->most_ranks ? ranks : t->most_ranks;
        room = dt_min(room, dt_hostshm_room(ranks));
    }
    t->round = room / DT_HOSTSHM_ROUNDS;
    t->n_leaders = dt_layout_leaders(hosts, least_ranks, t->round);
    t->serves_blocks = hosts <= DT_MESH_FEW;
}

/* Between two hosts no other algorithm sends less to root's host, and for small data none is
 * faster. */
static bool root_host_reduces_all(const struct dt_hierarchical *t, size_t bytes)
{
    return t->leaders->n == 2 || bytes <= MOST_COLLECTED;
}

static void choose_layout(struct hierarchical *d)
{
    const struct dt_hierarchical *t = d->t;
    size_t bytes = d->call->count * dt_dtype_size((dt_dtype_t)d->call->dtype);

    d->layout = (struct dt_layout){ .recipients = d->result->recipients,
                                    .hosts = t->leaders->n,
                                    .n_leaders = t->n_leaders,
                                    .root_host = d->result->root_host,
                                    .collects = d->result->recipients == DT_LAYOUT_FOR_ROOT &&
                                                root_host_reduces_all(t, bytes),
                                    .host_ranks = t->host_ranks,
                                    .bytes = bytes };
    dt_layout_make(&d->layout, t->round);
    d->huge = dt_layout_whole(&d->layout) >= t->shm->tuning->shm_huge;
}

/* If a host has one rank, it sends directly from its buffer, unless the data must be divided first
 * or results are to be stored there. */
static void choose_places(struct hierarchical *d)
{
    const struct dt_shm *s = d->t->shm;
    const struct dt_hierarchical_result *result = d->result;
    bool for_root = result->recipients == DT_LAYOUT_FOR_ROOT;

    d->is_leader = s->me < d->layout.n_leaders;
    d->in_place = result->recipients == DT_LAYOUT_FOR_ALL || (for_root && result->is_root);
    d->sends_in = s->n == 1 && result->host_divisor == 1 && (for_root || d->in != d->out);
    d->distributes = s->n > 1 && (for_root ? result->root_host == d->t->leaders->me
                                           : d->in_place || s->n > d->layout.n_leaders);
}

dt_result_t dt_hierarchical_reduce(const struct dt_hierarchical *t, const struct dt_call *call,
                                   const void *in, void *out,
                                   const struct dt_hierarchical_result *result)
{
    struct hierarchical d = { .t = t, .call = call, .result = result, .in = in, .out = out };
    dt_result_t r = DT_OK;

    if (result->recipients == DT_LAYOUT_FOR_ALL)
        t->leaders->algorithm = "tcp-multileader";
    choose_layout(&d);
    choose_places(&d);
    if (d.is_leader)
        r = make_hierarchical_flows(&d);
    if (r == DT_OK)
        r = make_round(&d);
    if (r == DT_OK && d.is_leader)
        r = run_among_hosts(&d);
    while (r == DT_OK && d.rounds < rounds_of(&d))
        r = make_round(&d);
    /* A rank that is not a leader has not heard from the other hosts. */
    if (r == DT_OK && !d.distributes && t->shm->n > d.layout.n_leaders)
        r = dt_shm_broadcast(t->shm, NULL, 0, 0);
    if (d.huge)
        dt_stream_settle();
    return r;
}
