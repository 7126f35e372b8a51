#include "runtime/tcp/alltoall.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/kernels/dtype.h"
#include "runtime/tcp/flow.h"

static size_t bytes_of(const struct dt_call *call, size_t count)
{
    return count * dt_dtype_size((dt_dtype_t)call->dtype);
}

static size_t block_offset(const struct dt_call *call, const struct dt_blocks *b, uint32_t rank)
{
    return dt_blocks_bytes(b, rank, (dt_dtype_t)call->dtype);
}

static void copy_own_block(void *to, const void *from, size_t bytes)
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

/* Whether this rank and the peer share memory. */
static bool is_local(const struct dt_mesh *m, uint32_t peer)
{
    return m->node_of && m->node_of[peer] == m->node_of[m->me];
}

/* Adds a transfer in one direction. Any two ranks have one in each direction, so that a sender,
 * too, learns that its peer makes this call. A transfer without data still states the count. */
static void add_transfer(struct transfers *p, uint32_t peer, bool out, void *base, size_t count)
{
    size_t bytes = bytes_of(p->call, count);

    p->v[p->n] = (struct transfer){ base, count, bytes };
    p->flows[p->n] = (struct dt_flow){ .peer = peer,
                                       .slot = (uint32_t)p->n,
                                       .out = out,
                                       .count = p->alike ? NULL : &p->v[p->n].count,
                                       .frames = dt_flow_segments(bytes) };
    p->n++;
}

static struct iovec block_frame(void *arg, const struct dt_flow *f, size_t k)
{
    const struct transfer *v = &((const struct transfers *)arg)->v[f->slot];

    return dt_flow_segment(v->base, v->bytes, k);
}

static dt_result_t run_transfers(struct transfers *p)
{
    struct dt_traffic t = { .call = p->call,
                            .flows = p->flows,
                            .n = p->n,
                            .batch = DT_FLOW_BATCH,
                            .one_stream = !p->alike && p->mesh->size > DT_MESH_FEW,
                            .frame = block_frame,
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

        if (!is_local(m, to))
            add_transfer(&p, to, true, (uint8_t *)(uintptr_t)in + block_offset(call, given, to),
                         dt_blocks_count(given, to));
        if (!is_local(m, from))
            add_transfer(&p, from, false, (uint8_t *)out + block_offset(call, taken, from),
                         dt_blocks_count(taken, from));
    }
    if (r == DT_OK)
        r = run_transfers(&p);
    if (r == DT_OK)
        copy_own_block((uint8_t *)out + block_offset(call, taken, m->me),
                       (const uint8_t *)in + block_offset(call, given, m->me),
                       bytes_of(call, dt_blocks_count(given, m->me)));
    transfers_free(&p);
    return r;
}

/* Moves one block, in the direction that `out` says. */
static dt_result_t run_one_transfer(struct transfers *p, uint32_t peer, bool out, void *base,
                                    size_t count)
{
    dt_result_t r = transfers_make(p, 2);

    if (r == DT_OK) {
        add_transfer(p, peer, out, base, count);
        add_transfer(p, peer, !out, NULL, 0);
        r = run_transfers(p);
    }
    transfers_free(p);
    return r;
}

static void *block_of(const struct dt_call *call, const struct dt_rooted *g, uint32_t rank)
{
    return (uint8_t *)g->whole + block_offset(call, g->blocks, rank);
}

dt_result_t dt_tcp_rooted(struct dt_mesh *m, const struct dt_call *call, const struct dt_rooted *g)
{
    struct transfers p = { .mesh = m, .call = call };
    dt_result_t r;

    if (m->me != g->root && is_local(m, g->root))
        return DT_OK;
    if (m->me != g->root)
        return run_one_transfer(&p, g->root, g->gathers, g->own, g->count);
    r = transfers_make(&p, 2 * (size_t)m->size);
    for (uint32_t i = 0; r == DT_OK && i < m->size; i++) {
        if (i == g->root || is_local(m, i))
            continue;
        add_transfer(&p, i, !g->gathers, block_of(call, g, i), dt_blocks_count(g->blocks, i));
        add_transfer(&p, i, g->gathers, NULL, 0);
    }
    if (r == DT_OK)
        r = run_transfers(&p);
    if (r == DT_OK && g->gathers)
        copy_own_block(block_of(call, g, g->root), g->own, bytes_of(call, g->count));
    else if (r == DT_OK)
        copy_own_block(g->own, block_of(call, g, g->root), bytes_of(call, g->count));
    transfers_free(&p);
    return r;
}

dt_result_t dt_tcp_send(struct dt_mesh *m, const struct dt_call *call, const void *buf,
                        size_t count, uint32_t peer)
{
    struct transfers p = { .mesh = m, .call = call, .alike = true };

    return run_one_transfer(&p, peer, true, (void *)(uintptr_t)buf, count);
}

dt_result_t dt_tcp_recv(struct dt_mesh *m, const struct dt_call *call, void *buf, size_t count,
                        uint32_t peer)
{
    struct transfers p = { .mesh = m, .call = call, .alike = true };

    return run_one_transfer(&p, peer, false, buf, count);
}

/* ---- all-gather ---- */

struct ring_gather {
    const struct dt_mesh *mesh;
    const struct dt_call *call;
    const struct dt_blocks *blocks;
    uint8_t *out;
    size_t segments; /* of every block; those of a short block may be empty */
    const struct dt_flow *source;
};

/* In step s a rank sends block me - s, which it received in the previous step, and receives block
 * me - s - 1. */
static struct iovec ring_gather_frame(void *arg, const struct dt_flow *f, size_t k)
{
    const struct ring_gather *g = arg;
    size_t n = g->mesh->size;
    uint32_t rank = (uint32_t)((g->mesh->me + 2 * n - k / g->segments - !f->out) % n);
    struct iovec block = { g->out + block_offset(g->call, g->blocks, rank),
                           bytes_of(g->call, dt_blocks_count(g->blocks, rank)) };

    return dt_flow_segment(block.iov_base, block.iov_len, k % g->segments);
}

static size_t ring_gather_ready(void *arg, const struct dt_flow *f)
{
    const struct ring_gather *g = arg;

    return f->out ? g->segments + g->source->done : f->frames;
}

dt_result_t dt_tcp_all_gather(struct dt_mesh *m, const struct dt_call *call, const void *in,
                              void *out, const struct dt_blocks *blocks)
{
    struct ring_gather g = { .mesh = m, .call = call, .blocks = blocks, .out = out, .segments = 1 };
    struct dt_flow flows[] = { { .peer = (m->me + 1) % m->size, .out = true },
                               { .peer = (m->me + m->size - 1) % m->size } };
    struct dt_traffic t = { .call = call,
                            .flows = flows,
                            .n = 2,
                            .batch = DT_FLOW_BATCH,
                            .frame = ring_gather_frame,
                            .ready = ring_gather_ready,
                            .arg = &g };

    copy_own_block(g.out + block_offset(call, blocks, m->me), in,
                   bytes_of(call, dt_blocks_count(blocks, m->me)));
    for (uint32_t i = 0; i < m->size; i++) {
        size_t segments = dt_flow_segments(bytes_of(call, dt_blocks_count(blocks, i)));

        g.segments = segments > g.segments ? segments : g.segments;
    }
    if (m->size == 1)
        return DT_OK;
    flows[0].frames = flows[1].frames = (m->size - 1) * g.segments;
    g.source = &flows[1];
    return dt_flow_run(m, &t);
}
