#include "runtime/coll/ring_allgather.h"

#include <stdlib.h>

#include "runtime/base/copy.h"
#include "runtime/kernels/dtype.h"
#include "runtime/shm/pairwise.h"
#include "runtime/tcp/flow.h"

struct ring_gather {
    const struct dt_ring_allgather *g;
    const struct dt_call *call;
    uint8_t *out;
    struct dt_range *ranges;  /* of the blocks in out, by rank */
    size_t blocks_per_leader; /* blocks for each leader of the largest host */
    size_t segments;          /* of every block; those of a short block may be empty */
    const struct dt_flow *source;
};

/* ---- whose block is where ---- */

static void find_blocks(struct ring_gather *d, const struct dt_blocks *blocks)
{
    const struct dt_ring_allgather *g = d->g;
    size_t element = dt_dtype_size((dt_dtype_t)d->call->dtype), at = 0;

    for (uint32_t host = 0; host < g->leaders->n; host++) {
        size_t blocks_per_leader =
            (dt_host_ranks_count(g->host_ranks, host) + g->n_leaders - 1) / g->n_leaders;

        d->blocks_per_leader =
            blocks_per_leader > d->blocks_per_leader ? blocks_per_leader : d->blocks_per_leader;
    }
    for (uint32_t rank = 0; rank < g->size; rank++) {
        size_t bytes = dt_blocks_count(blocks, rank) * element;
        size_t segments = dt_flow_segments(bytes);

        d->segments = segments > d->segments ? segments : d->segments;
        d->ranges[rank] = (struct dt_range){ at, bytes };
        at += bytes;
    }
}

/* The block of local rank i of a host; empty if the host has fewer ranks. */
static struct dt_range block(const struct ring_gather *d, uint32_t host, size_t i)
{
    const struct dt_host_ranks *r = d->g->host_ranks;

    return i < dt_host_ranks_count(r, host) ? d->ranges[r->ranks[r->first[host] + i]]
                                            : (struct dt_range){ 0 };
}

/* ---- between the hosts ---- */

/* In step s a leader sends host me - s's blocks, which it received in the previous step, and
 * receives those of host me - s - 1. */
static struct iovec ring_gather_frame(void *arg, const struct dt_flow *f, size_t k)
{
    const struct ring_gather *d = arg;
    const struct dt_leaders *l = d->g->leaders;
    size_t turn = k / d->segments % d->blocks_per_leader,
           step = k / d->segments / d->blocks_per_leader;
    uint32_t host = (uint32_t)((l->me + 2 * (size_t)l->n - step - !f->out) % l->n);
    struct dt_range range = block(d, host, d->g->shm->me + turn * d->g->n_leaders);

    return dt_flow_segment(d->out + range.at, range.bytes, k % d->segments);
}

static size_t ring_gather_ready(void *arg, const struct dt_flow *f)
{
    const struct ring_gather *d = arg;

    return f->out ? d->blocks_per_leader * d->segments + d->source->done : f->frames;
}

static dt_result_t gather_among_hosts(struct ring_gather *d)
{
    const struct dt_leaders *l = d->g->leaders;
    uint32_t to = l->peers[(l->me + 1) % l->n], from = l->peers[(l->me + l->n - 1) % l->n];
    size_t frames = (l->n - 1) * d->blocks_per_leader * d->segments;
    struct dt_flow flows[] = { { .peer = to, .out = true, .frames = frames },
                               { .peer = from, .frames = frames } };
    struct dt_traffic t = { .call = d->call,
                            .flows = flows,
                            .n = 2,
                            .batch = DT_FLOW_BATCH,
                            .frame = ring_gather_frame,
                            .ready = ring_gather_ready,
                            .arg = d };

    d->source = t.flows + 1;
    return dt_flow_run(l->mesh, &t);
}

/* ---- within the host ---- */

/* The first n_blocks ranks of this host publish one block each of the given host, beginning with
 * that of its local rank "from". */
static dt_result_t publish_blocks(const struct ring_gather *d, uint32_t host, size_t from,
                                  uint32_t n_blocks)
{
    struct dt_shm *s = d->g->shm;
    struct dt_range give[s->n], take[s->n];
    struct dt_pairwise m = { .s = s,
                             .call = d->call,
                             .in = d->out,
                             .give = give,
                             .out = d->out,
                             .take = take,
                             .one_window = true,
                             .gives = true,
                             .takes = true };
    size_t bytes = 0;

    for (uint32_t i = 0; i < s->n; i++) {
        take[i] = i < n_blocks ? block(d, host, from + i) : (struct dt_range){ 0 };
        give[i] = s->me < n_blocks ? block(d, host, from + s->me) : (struct dt_range){ 0 };
        bytes += take[i].bytes;
    }
    return bytes ? dt_pairwise(&m) : DT_OK;
}

static dt_result_t publish_arrived(const struct ring_gather *d)
{
    const struct dt_ring_allgather *g = d->g;
    dt_result_t r = DT_OK;

    for (uint32_t host = 0; host < g->leaders->n; host++) {
        for (size_t turn = 0; r == DT_OK && host != g->leaders->me && turn < d->blocks_per_leader;
             turn++)
            r = publish_blocks(d, host, turn * g->n_leaders, g->n_leaders);
    }
    return r;
}

static dt_result_t gather_blocks(struct ring_gather *d, const void *in)
{
    const struct dt_ring_allgather *g = d->g;
    struct dt_range own = block(d, g->leaders->me, g->shm->me);
    dt_result_t r;

    if (own.bytes && in != d->out + own.at)
        dt_copy(d->out + own.at, in, own.bytes);
    r = publish_blocks(d, g->leaders->me, 0, g->shm->n);
    if (r == DT_OK && g->shm->me < g->n_leaders)
        r = gather_among_hosts(d);
    return r == DT_OK ? publish_arrived(d) : r;
}

dt_result_t dt_ring_allgather(const struct dt_ring_allgather *g, const struct dt_call *call,
                              const void *in, void *out, const struct dt_blocks *blocks)
{
    struct ring_gather d = {
        .g = g, .call = call, .out = out, .blocks_per_leader = 1, .segments = 1
    };
    dt_result_t r;

    d.ranges = calloc(g->size, sizeof *d.ranges);
    if (d.ranges) {
        find_blocks(&d, blocks);
        r = gather_blocks(&d, in);
    } else {
        r = dt_coll_error(g->shm->coll_error, DT_ERR_NOMEM, g->shm->ranks[g->shm->me]);
    }
    free(d.ranges);
    return r;
}
