#include "runtime/coll/leaders.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/min.h"
#include "runtime/kernels/reduce.h"
#include "runtime/tcp/flow.h"

enum {
    STEPS_MOST = 32,
    MOST_BY_TREE = 64 * 1024, /* bytes; larger data travel faster along a chain of hosts */
};

void dt_leaders_close(struct dt_leaders *l)
{
    free(l->scratch);
    free(l->flows);
    l->scratch = NULL;
    l->flows = NULL;
    l->scratch_bytes = 0;
}

dt_result_t dt_leaders_scratch(struct dt_leaders *l, size_t bytes)
{
    uint8_t *p;

    if (l->scratch_bytes >= bytes)
        return DT_OK;
    p = realloc(l->scratch, bytes);
    if (!p)
        return dt_mesh_no_memory(l->mesh);
    l->scratch = p;
    l->scratch_bytes = bytes;
    return DT_OK;
}

struct dt_flow dt_leaders_flow_to(const struct dt_leaders *l, uint32_t place, size_t frames)
{
    return (
        struct dt_flow){ .peer = l->peers[place], .slot = place, .out = true, .frames = frames };
}

struct dt_flow dt_leaders_flow_from(const struct dt_leaders *l, uint32_t place, size_t frames)
{
    return (struct dt_flow){ .peer = l->peers[place], .slot = place, .frames = frames };
}

dt_result_t dt_leaders_flows_with_all(struct dt_leaders *l, size_t frames, struct dt_traffic *t)
{
    t->n = 2 * ((size_t)l->n - 1);
    t->one_stream = l->n > DT_MESH_FEW;
    if (!l->flows)
        l->flows = calloc(t->n, sizeof *l->flows);
    t->flows = l->flows;
    if (!t->flows)
        return dt_mesh_no_memory(l->mesh);
    for (uint32_t i = 1; i < l->n; i++) {
        t->flows[i - 1] = dt_leaders_flow_to(l, (l->me + i) % l->n, frames);
        t->flows[l->n - 1 + i - 1] = dt_leaders_flow_from(l, (l->me + l->n - i) % l->n, frames);
    }
    return DT_OK;
}

/* ---- connecting ---- */

static uint32_t all_peers(const struct dt_leaders *l, uint32_t *peers)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < l->n; i++) {
        if (i != l->me)
            peers[n++] = l->peers[i];
    }
    return n;
}

static uint32_t step_peers(const struct dt_leaders *l, uint32_t *peers)
{
    uint32_t n = 0;

    for (uint32_t far = 1; far < l->n; far *= 2) {
        peers[n++] = l->peers[(l->me + far) % l->n];
        peers[n++] = l->peers[(l->me + l->n - far) % l->n];
    }
    return n;
}

/* If there are few hosts, the first call connects each of them with all others. If there are many,
 * it makes only the connections that its steps use, so that ranks whose calls differ do not wait
 * for connections that other ranks do not make. */
dt_result_t dt_leaders_connect(struct dt_leaders *l)
{
    uint32_t peers[2 * STEPS_MOST];
    uint32_t n = l->n <= DT_MESH_FEW ? all_peers(l, peers) : step_peers(l, peers);

    return n ? dt_mesh_need(l->mesh, peers, n, l->mesh->streams) : DT_OK;
}

/* With many hosts, most algorithms need only the connections of dt_leaders_connect. Before one that
 * needs all connections, the hosts make a barrier, so that none waits for a host that makes another
 * call. */
static dt_result_t agree_to_connect_all(struct dt_leaders *l, const struct dt_traffic *t)
{
    dt_result_t r;

    if (l->n <= DT_MESH_FEW || l->connected || t->n < 2 * ((size_t)l->n - 1))
        return DT_OK;
    r = dt_leaders_barrier(l, t->call);
    l->connected = r == DT_OK;
    return r;
}

dt_result_t dt_leaders_run(struct dt_leaders *l, const struct dt_traffic *t)
{
    dt_result_t r = dt_leaders_connect(l);

    if (r == DT_OK)
        r = agree_to_connect_all(l, t);
    return r == DT_OK ? dt_flow_run(l->mesh, t) : r;
}

void dt_leaders_fold(const struct dt_call *call, void *dst, const void *const *src, size_t n,
                     size_t bytes, double divisor)
{
    dt_dtype_t dtype = (dt_dtype_t)call->dtype;
    struct dt_fold f = {
        .dst = dst, .src = src, .n = n, .count = bytes / dt_dtype_size(dtype), .divisor = divisor
    };

    if (bytes)
        dt_fold(&f, dtype, (dt_op_t)call->op);
}

/* ---- barrier in log2(hosts) steps ----
 *
 * In step s each host waits for the host 2^s places after it, and tells the host 2^s places before
 * it once it has heard in all earlier steps. */

struct step_flows { /* the flows of a step: one out, one in */
    struct dt_flow flows[2 * STEPS_MOST];
    size_t n;
};

static void make_step_flows(const struct dt_leaders *l, struct step_flows *m)
{
    uint32_t step = 0;

    for (uint32_t far = 1; far < l->n; far *= 2) {
        m->flows[m->n] = dt_leaders_flow_to(l, (l->me + l->n - far) % l->n, 1);
        m->flows[m->n + 1] = dt_leaders_flow_from(l, (l->me + far) % l->n, 1);
        m->flows[m->n].slot = m->flows[m->n + 1].slot = step++;
        m->n += 2;
    }
}

static bool may_send_step(const struct step_flows *m, uint32_t step)
{
    for (uint32_t before = 0; before < step; before++) {
        if (m->flows[2 * before + 1].done == 0)
            return false;
    }
    return true;
}

/* ---- gather: every host's block to all ----
 *
 * In step s each host sends the 2^s blocks that it has: its own and those of the hosts after it.
 * The receiver stores them next to its own. */

struct bruck_gather {
    struct step_flows step_flows;
    const struct dt_leaders *leaders;
    uint8_t *blocks; /* this host's, then those of the hosts after it */
    size_t bytes;    /* of a block */
};

static struct iovec gather_frame(void *arg, const struct dt_flow *f, size_t k)
{
    const struct bruck_gather *g = arg;
    size_t have = (size_t)1 << f->slot;

    (void)k;
    return (struct iovec){ g->blocks + (f->out ? 0 : have * g->bytes),
                           dt_min(have, g->leaders->n - have) * g->bytes };
}

static size_t gather_ready(void *arg, const struct dt_flow *f)
{
    const struct bruck_gather *g = arg;

    return !f->out || may_send_step(&g->step_flows, f->slot);
}

dt_result_t dt_leaders_gather(struct dt_leaders *l, const struct dt_call *call, uint8_t *blocks,
                              size_t bytes)
{
    struct bruck_gather g = { .leaders = l, .blocks = blocks, .bytes = bytes };
    struct dt_traffic t = { .call = call,
                            .flows = g.step_flows.flows,
                            .frame = gather_frame,
                            .ready = gather_ready,
                            .arg = &g };

    make_step_flows(l, &g.step_flows);
    t.n = g.step_flows.n;
    return dt_leaders_run(l, &t);
}

dt_result_t dt_leaders_barrier(struct dt_leaders *l, const struct dt_call *call)
{
    uint8_t none;

    return dt_leaders_gather(l, call, &none, 0);
}

dt_result_t dt_leaders_barrier_sum(struct dt_leaders *l, const struct dt_call *call, uint64_t *word)
{
    dt_result_t r = dt_leaders_scratch(l, l->n * sizeof *word);

    if (r != DT_OK)
        return r;
    memcpy(l->scratch, word, sizeof *word);
    r = dt_leaders_gather(l, call, l->scratch, sizeof *word);
    for (uint32_t i = 1; r == DT_OK && i < l->n; i++) {
        uint64_t theirs;

        memcpy(&theirs, l->scratch + i * sizeof theirs, sizeof theirs);
        *word += theirs;
    }
    return r;
}

/* ---- broadcast ----
 *
 * The barrier's frames carry the data. Small data travel down a tree: a host gets them with the
 * first frame from a host that has them. Large data follow the first frame of step 0, segment by
 * segment along a chain of hosts. */

struct leader_broadcast {
    struct step_flows step_flows;
    const struct dt_leaders *leaders;
    uint32_t root;
    bool chain;          /* else down a tree */
    size_t empty_frames; /* frames before the data: in the chain the first frame only announces the
                            host */
    uint8_t *buf;
    size_t bytes;
    const struct dt_flow *source; /* NULL: this host has the data */
};

/* Whether the host at a place sends the data in that step. */
static bool sends_data(const struct leader_broadcast *s, uint32_t place, uint32_t step)
{
    uint32_t n = s->leaders->n, have = UINT32_C(1) << step;
    uint32_t ahead = (s->root + n - place) % n; /* root is this many places after it */

    if (s->chain)
        return step == 0 && ahead != n - 1;
    return ahead < have && ahead < n - have;
}

static bool has_data(const struct leader_broadcast *s, const struct dt_flow *f)
{
    return f->out ? sends_data(s, s->leaders->me, f->slot) : f == s->source;
}

static struct iovec broadcast_frame(void *arg, const struct dt_flow *f, size_t k)
{
    const struct leader_broadcast *s = arg;

    if (!has_data(s, f) || k < s->empty_frames)
        return (struct iovec){ s->buf, 0 };
    return dt_flow_segment(s->buf, s->bytes, k - s->empty_frames);
}

static size_t broadcast_ready(void *arg, const struct dt_flow *f)
{
    const struct leader_broadcast *s = arg;

    if (f->out && !may_send_step(&s->step_flows, f->slot))
        return 0;
    if (!f->out || !s->source || !has_data(s, f))
        return f->frames;
    return s->source->done ? s->source->done : s->empty_frames;
}

/* The flows of the barrier; some of them carry the data. */
static void make_broadcast_flows(struct leader_broadcast *s)
{
    const struct dt_leaders *l = s->leaders;

    make_step_flows(l, &s->step_flows);
    for (size_t i = 0; i < s->step_flows.n; i++) {
        struct dt_flow *f = &s->step_flows.flows[i];
        uint32_t sender = f->out ? l->me : (l->me + (UINT32_C(1) << f->slot)) % l->n;

        if (!sends_data(s, sender, f->slot))
            continue;
        f->frames = s->empty_frames + dt_flow_segments(s->bytes);
        if (!f->out)
            s->source = f;
    }
}

dt_result_t dt_leaders_broadcast(struct dt_leaders *l, const struct dt_call *call, void *buf,
                                 size_t bytes, uint32_t root)
{
    bool chain = bytes > MOST_BY_TREE;
    struct leader_broadcast s = { .leaders = l,
                                  .root = root,
                                  .chain = chain,
                                  .empty_frames = chain,
                                  .buf = buf,
                                  .bytes = bytes };
    struct dt_traffic t = { .call = call,
                            .flows = s.step_flows.flows,
                            .batch = DT_FLOW_BATCH,
                            .frame = broadcast_frame,
                            .ready = broadcast_ready,
                            .arg = &s };

    make_broadcast_flows(&s);
    t.n = s.step_flows.n;
    return dt_leaders_run(l, &t);
}
