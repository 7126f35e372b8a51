#include "runtime/tcp/alltoall.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/kernels/dtype.h"
#include "runtime/tcp/flow.h"

static size_t count_of(const struct dt_blocks *b, uint32_t rank)
{
    return b->counts ? b->counts[rank] : b->each;
}

/* In bytes. */
static size_t size_of(const struct dt_call *call, size_t count)
{
    return count * dt_dtype_size((dt_dtype_t)call->dtype);
}

static size_t place_of(const struct dt_call *call, const struct dt_blocks *b, uint32_t rank)
{
    size_t before = b->counts ? 0 : b->each * rank;

    for (uint32_t i = 0; b->counts && i < rank; i++)
        before += b->counts[i];
    return size_of(call, before);
}

/* This rank's block for itself is copied. */
static void keep(void *to, const void *from, size_t bytes)
{
    if (bytes && to != from)
        memmove(to, from, bytes);
}

/* ---- transfers: each flow moves one block ---- */

struct transfers {
    struct dt_mesh *mesh;
    const struct dt_call *call;
    bool alike; /* the call states the counts of both sides, so the transfers state none */
    size_t n;
    struct dt_flow *flows;
    struct transfer {
        void *base;
        uint64_t count;
        size_t bytes;
    } * v;
};

static dt_result_t transfers_make(struct transfers *p, size_t most)
{
    p->flows = calloc(most, sizeof *p->flows);
    p->v = calloc(most, sizeof *p->v);
    if (p->flows && p->v)
        return DT_OK;
    return dt_mesh_no_memory(p->mesh);
}

static void transfers_free(struct transfers *p)
{
    free(p->flows);
    free(p->v);
}

/* Whether the two ranks have shared memory. */
static bool is_near(const struct dt_mesh *m, uint32_t peer)
{
    return m->node_of && m->node_of[peer] == m->node_of[m->me];
}

/* Adds one transfer in each direction, so that the sender, too, learns that the other makes this
 * call. A transfer without data still states the count. */
static void add(struct transfers *p, uint32_t peer, bool out, void *base, size_t count)
{
    size_t bytes = size_of(p->call, count);

    p->v[p->n] = (struct transfer){ base, count, bytes };
    p->flows[p->n] = (struct dt_flow){ .peer = peer,
                                       .slot = (uint32_t)p->n,
                                       .out = out,
                                       .count = p->alike ? NULL : &p->v[p->n].count,
                                       .frames = dt_flow_segments(bytes) };
    p->n++;
}

static void add_given(struct transfers *p, uint32_t peer, const void *base, size_t count)
{
    add(p, peer, true, (void *)(uintptr_t)base, count);
}

static struct iovec parcel_frame(void *arg, const struct dt_flow *f, size_t k)
{
    const struct transfer *v = &((const struct transfers *)arg)->v[f->slot];

    return dt_flow_segment(v->base, v->bytes, k);
}

static dt_result_t ship(struct transfers *p)
{
    struct dt_traffic t = { .call = p->call,
                            .flows = p->flows,
                            .n = p->n,
                            .batch = DT_FLOW_BATCH,
                            .one_stream = !p->alike && p->mesh->size > DT_MESH_FEW,
                            .frame = parcel_frame,
                            .arg = p };

    return dt_flow_run(p->mesh, &t);
}

dt_result_t dt_tcp_all_to_all(struct dt_mesh *m, const struct dt_call *call, const void *in,
                              const struct dt_blocks *given, void *out,
                              const struct dt_blocks *taken)
{
    struct transfers p = { .mesh = m, .call = call };
    dt_result_t r = transfers_make(&p, 2 * (size_t)m->size);

    for (uint32_t i = 1; r == DT_OK && i < m->size; i++) {
        uint32_t to = (m->me + i) % m->size, from = (m->me + m->size - i) % m->size;

        if (!is_near(m, to))
            add_given(&p, to, (const uint8_t *)in + place_of(call, given, to), count_of(given, to));
        if (!is_near(m, from))
            add(&p, from, false, (uint8_t *)out + place_of(call, taken, from),
                count_of(taken, from));
    }
    if (r == DT_OK)
        r = ship(&p);
    if (r == DT_OK)
        keep((uint8_t *)out + place_of(call, taken, m->me),
             (const uint8_t *)in + place_of(call, given, m->me),
             size_of(call, count_of(given, m->me)));
    transfers_free(&p);
    return r;
}

static dt_result_t with_one(struct dt_mesh *m, const struct dt_call *call, void *buf, size_t count,
                            uint32_t peer, bool out, bool alike)
{
    struct transfers p = { .mesh = m, .call = call, .alike = alike };
    dt_result_t r = transfers_make(&p, 2);

    if (r == DT_OK) {
        add(&p, peer, out, buf, count);
        add(&p, peer, !out, NULL, 0);
        r = ship(&p);
    }
    transfers_free(&p);
    return r;
}

dt_result_t dt_tcp_gather(struct dt_mesh *m, const struct dt_call *call, const void *in,
                          size_t count, void *out, const struct dt_blocks *blocks, uint32_t root)
{
    struct transfers p = { .mesh = m, .call = call };
    dt_result_t r;

    if (m->me != root && is_near(m, root))
        return DT_OK;
    if (m->me != root)
        return with_one(m, call, (void *)(uintptr_t)in, count, root, true, false);
    r = transfers_make(&p, 2 * (size_t)m->size);
    for (uint32_t i = 0; r == DT_OK && i < m->size; i++) {
        if (i == root || is_near(m, i))
            continue;
        add(&p, i, false, (uint8_t *)out + place_of(call, blocks, i), count_of(blocks, i));
        add_given(&p, i, NULL, 0);
    }
    if (r == DT_OK)
        r = ship(&p);
    if (r == DT_OK)
        keep((uint8_t *)out + place_of(call, blocks, root), in, size_of(call, count));
    transfers_free(&p);
    return r;
}

dt_result_t dt_tcp_scatter(struct dt_mesh *m, const struct dt_call *call, const void *in,
                           const struct dt_blocks *blocks, void *out, size_t count, uint32_t root)
{
    struct transfers p = { .mesh = m, .call = call };
    dt_result_t r;

    if (m->me != root && is_near(m, root))
        return DT_OK;
    if (m->me != root)
        return with_one(m, call, out, count, root, false, false);
    r = transfers_make(&p, 2 * (size_t)m->size);
    for (uint32_t i = 0; r == DT_OK && i < m->size; i++) {
        if (i == root || is_near(m, i))
            continue;
        add_given(&p, i, (const uint8_t *)in + place_of(call, blocks, i), count_of(blocks, i));
        add(&p, i, false, NULL, 0);
    }
    if (r == DT_OK)
        r = ship(&p);
    if (r == DT_OK)
        keep(out, (const uint8_t *)in + place_of(call, blocks, root), size_of(call, count));
    transfers_free(&p);
    return r;
}

dt_result_t dt_tcp_send(struct dt_mesh *m, const struct dt_call *call, const void *buf,
                        size_t count, uint32_t peer)
{
    return with_one(m, call, (void *)(uintptr_t)buf, count, peer, true, true);
}

dt_result_t dt_tcp_recv(struct dt_mesh *m, const struct dt_call *call, void *buf, size_t count,
                        uint32_t peer)
{
    return with_one(m, call, buf, count, peer, false, true);
}

/* ---- all-gather ---- */

struct gathering {
    const struct dt_mesh *mesh;
    const struct dt_call *call;
    const struct dt_blocks *blocks;
    uint8_t *out;
    size_t segments; /* of every block; those of a short block may be empty */
    const struct dt_flow *source;
};

/* In step s a rank sends block me - s, which it received in the previous step, and receives block
 * me - s - 1. */
static struct iovec gather_frame(void *arg, const struct dt_flow *f, size_t k)
{
    const struct gathering *g = arg;
    size_t n = g->mesh->size;
    uint32_t rank = (uint32_t)((g->mesh->me + 2 * n - k / g->segments - !f->out) % n);
    struct iovec block = { g->out + place_of(g->call, g->blocks, rank),
                           size_of(g->call, count_of(g->blocks, rank)) };

    return dt_flow_segment(block.iov_base, block.iov_len, k % g->segments);
}

static size_t gather_ready(void *arg, const struct dt_flow *f)
{
    const struct gathering *g = arg;

    return f->out ? g->segments + g->source->done : f->frames;
}

dt_result_t dt_tcp_all_gather(struct dt_mesh *m, const struct dt_call *call, const void *in,
                              void *out, const struct dt_blocks *blocks)
{
    struct gathering g = { .mesh = m, .call = call, .blocks = blocks, .out = out, .segments = 1 };
    struct dt_flow flows[] = { { .peer = (m->me + 1) % m->size, .out = true },
                               { .peer = (m->me + m->size - 1) % m->size } };
    struct dt_traffic t = { .call = call,
                            .flows = flows,
                            .n = 2,
                            .batch = DT_FLOW_BATCH,
                            .frame = gather_frame,
                            .ready = gather_ready,
                            .arg = &g };

    keep(g.out + place_of(call, blocks, m->me), in, size_of(call, count_of(blocks, m->me)));
    for (uint32_t i = 0; i < m->size; i++) {
        size_t segments = dt_flow_segments(size_of(call, count_of(blocks, i)));

        g.segments = segments > g.segments ? segments : g.segments;
    }
    if (m->size == 1)
        return DT_OK;
    flows[0].frames = flows[1].frames = (m->size - 1) * g.segments;
    g.source = &flows[1];
    return dt_flow_run(m, &t);
}
