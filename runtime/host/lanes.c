#include "runtime/host/lanes.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/host/flow.h"
#include "runtime/host/least.h"
#include "runtime/host/reduce.h"

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

struct dt_flow dt_lanes_flow_to(const struct dt_lanes *l, uint32_t place, size_t frames)
{
    return (
        struct dt_flow){ .peer = l->peers[place], .slot = place, .out = true, .frames = frames };
}

struct dt_flow dt_lanes_flow_from(const struct dt_lanes *l, uint32_t place, size_t frames)
{
    return (struct dt_flow){ .peer = l->peers[place], .slot = place, .frames = frames };
}

void dt_lanes_flows_with_all(const struct dt_lanes *l, struct dt_flow *flows, size_t frames)
{
    for (uint32_t i = 1; i < l->n; i++) {
        flows[i - 1] = dt_lanes_flow_to(l, (l->me + i) % l->n, frames);
        flows[l->n - 1 + i - 1] = dt_lanes_flow_from(l, (l->me + l->n - i) % l->n, frames);
    }
}

/* Few hosts are all connected by the first call, so that ranks whose calls do not fit need not wait
 * for connections that the others do not make. */
static dt_result_t connect_few(struct dt_lanes *l)
{
    uint32_t peers[DT_LANES_FEW];
    size_t n = 0;

    for (uint32_t i = 0; l->n <= DT_LANES_FEW && i < l->n; i++) {
        if (i != l->me)
            peers[n++] = l->peers[i];
    }
    return n ? dt_mesh_need(l->mesh, peers, n) : DT_OK;
}

/* What more hosts use goes along the connections of a barrier, which is the first call of all. But
 * for this: so that they need not wait either, they make one more before. */
static dt_result_t connect_all(struct dt_lanes *l, const struct dt_traffic *t)
{
    dt_result_t r;

    if (l->n <= DT_LANES_FEW || l->connected || t->n < 2 * ((size_t)l->n - 1))
        return DT_OK;
    r = dt_lanes_barrier(l, t->call);
    l->connected = r == DT_OK;
    return r;
}

dt_result_t dt_lanes_run(struct dt_lanes *l, const struct dt_traffic *t)
{
    uint32_t peers[t->n];
    dt_result_t r = connect_few(l);

    for (size_t i = 0; i < t->n; i++)
        peers[i] = t->flows[i].peer;
    if (r == DT_OK)
        r = connect_all(l, t);
    if (r == DT_OK)
        r = dt_mesh_need(l->mesh, peers, t->n);
    return r == DT_OK ? dt_flow_run(l->mesh, t) : r;
}

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

dt_result_t dt_lanes_gather(struct dt_lanes *l, const struct dt_call *call, uint8_t *blocks,
                            size_t bytes)
{
    struct dt_flow flows[2 * 32];
    struct gathering g = { .lanes = l, .blocks = blocks, .bytes = bytes, .flows = flows };
    struct dt_traffic t = {
        .call = call, .flows = flows, .frame = gather_frame, .ready = gather_ready, .arg = &g
    };

    for (uint32_t have = 1; have < l->n; have *= 2) {
        flows[t.n] = dt_lanes_flow_to(l, (l->me + l->n - have) % l->n, 1);
        flows[t.n + 1] = dt_lanes_flow_from(l, (l->me + have) % l->n, 1);
        flows[t.n].slot = flows[t.n + 1].slot = (uint32_t)g.steps++;
        t.n += 2;
    }
    return dt_lanes_run(l, &t);
}

dt_result_t dt_lanes_barrier(struct dt_lanes *l, const struct dt_call *call)
{
    uint8_t none;

    return dt_lanes_gather(l, call, &none, 0);
}

dt_result_t dt_lanes_barrier_adding(struct dt_lanes *l, const struct dt_call *call, uint64_t *word)
{
    dt_result_t r = dt_lanes_scratch(l, l->n * sizeof *word);

    if (r != DT_OK)
        return r;
    memcpy(l->scratch, word, sizeof *word);
    r = dt_lanes_gather(l, call, l->scratch, sizeof *word);
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

    return carries(s, f) ? dt_flow_segment(s->buf, s->bytes, k) : (struct iovec){ s->buf, 0 };
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
    flows[0] = dt_lanes_flow_to(l, place, to ? frames : 1);
    flows[1] = dt_lanes_flow_from(l, place, to ? 1 : frames);
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
