#include "runtime/comm.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/dtype.h"
#include "runtime/host/tcp.h"
#include "runtime/wire/inet.h"

static_assert((int)DT_HOSTSHM_PEER_DIED == (int)DT_ERR_PEER &&
                  (int)DT_HOSTSHM_TIMED_OUT == (int)DT_ERR_TIMEOUT,
              "the agent names the reason in our terms");

enum {
    CONNECT_MS = 60 * 1000, /* every leader listens already when this begins */
    RING_SPINS = 200,
};

/* ---- what went wrong, in words ---- */

static const char *describe(const struct dt_call *call, char text[160])
{
    const char *where = call->device ? " in device memory" : "";

    if (call->kind == DT_CALL_ALL_REDUCE)
        snprintf(text, 160, "all-reduce of %" PRIu64 " %s (%s)%s, call %" PRIu64, call->count,
                 dt_dtype_name(call->dtype), dt_op_name(call->op), where, call->number);
    else if (call->kind == DT_CALL_BROADCAST)
        snprintf(text, 160, "broadcast of %" PRIu64 " %s from rank %d%s, call %" PRIu64,
                 call->count, dt_dtype_name(call->dtype), call->root, where, call->number);
    else
        snprintf(text, 160, "%s, call %" PRIu64, dt_hostshm_call_name(call->kind), call->number);
    return text;
}

static dt_result_t say_mismatch(const struct dt_comm *c, const struct dt_call *ours)
{
    const struct dt_trouble *t = &c->trouble;
    const char *why = dt_hostshm_why(&c->shm.map);
    char mine[160], theirs[160];

    if (t->theirs.kind == 0 && *why)
        return dt_fail(t->code, "rank %d called %s; elsewhere %s", c->rank, describe(ours, mine),
                       why);
    if (t->theirs.kind == 0)
        return dt_fail(t->code,
                       "rank %d called %s; others called something else, as rank %u noticed",
                       c->rank, describe(ours, mine), t->rank);
    return dt_fail(t->code, "rank %d called %s; rank %u called %s", c->rank, describe(ours, mine),
                   t->rank, describe(&t->theirs, theirs));
}

static dt_result_t say(const struct dt_comm *c, const struct dt_call *call)
{
    const struct dt_trouble *t = &c->trouble;
    const char *why = dt_hostshm_why(&c->shm.map);
    char text[160];

    switch (t->code) {
    case DT_ERR_MISMATCH:
        return say_mismatch(c, call);
    case DT_ERR_PEER:
        if (t->rank == UINT32_MAX)
            return dt_fail(t->code, "rank %d: %s: dtrun-agent of this host has ended", c->rank,
                           describe(call, text));
        return dt_fail(t->code, "rank %d: %s: rank %u died or left", c->rank, describe(call, text),
                       t->rank);
    case DT_ERR_TIMEOUT:
        if (*why)
            return dt_fail(t->code, "rank %d: %s: timed out: %s", c->rank, describe(call, text),
                           why);
        return dt_fail(t->code, "rank %d: no connection with rank %u in %d s%s%s", c->rank, t->rank,
                       CONNECT_MS / 1000, t->error ? ": " : "", t->error ? strerror(t->error) : "");
    default:
        return dt_fail(t->code, "rank %d: %s: rank %u failed: %s", c->rank, describe(call, text),
                       t->rank, *why ? why : dt_strerror(t->code));
    }
}

static bool lasting(dt_result_t result)
{
    return result != DT_ERR_ARG && result != DT_ERR_UNSUPPORTED && result != DT_ERR_VERSION;
}

/* The agent is told before anybody can see the host stop, and end: its other ranks' deaths then
 * come second, wherever they are heard of. */
static void stop_host(struct dt_comm *c, dt_result_t result)
{
    uint32_t culprit = c->trouble.rank;

    if (result != DT_ERR_PEER && !dt_hostshm_stopped(&c->shm.map, NULL))
        dt_agentlink_failed(&c->agent, result, culprit, c->why);
    dt_hostshm_stop(&c->shm.map, result, culprit);
}

dt_result_t dt_comm_fail(struct dt_comm *c, dt_result_t result)
{
    if (result == DT_OK || !lasting(result) || c->failed != DT_OK)
        return result;
    c->failed = result;
    snprintf(c->why, sizeof c->why, "%s", dt_last_error());
    if (!c->shm.map.head)
        return result;
    if (c->trouble.code != result)
        dt_trouble(&c->trouble, result, (uint32_t)c->rank);
    if (result == DT_ERR_PEER || dt_hostshm_stopped(&c->shm.map, NULL) == DT_ERR_TIMEOUT)
        atomic_fetch_or(&c->shm.map.ranks[c->local_rank].flags, DT_HOSTSHM_PEER_LOST);
    stop_host(c, result);
    if (c->ring.n > 1)
        dt_ring_fail(&c->ring, result);
    return result;
}

dt_result_t dt_comm_check(struct dt_comm *c)
{
    uint32_t culprit;
    int stopped;

    if (c->failed != DT_OK)
        return dt_fail(c->failed, "%s", c->why);
    if (!c->shm.map.head)
        return DT_OK;
    stopped = dt_hostshm_stopped(&c->shm.map, &culprit);
    if (!stopped)
        return DT_OK;
    dt_trouble(&c->trouble, (dt_result_t)stopped, culprit);
    return dt_comm_fail(c, dt_fail((dt_result_t)stopped, "rank %d: rank %u %s", c->rank, culprit,
                                   stopped == DT_ERR_PEER ? "died or left" : "failed"));
}

/* ---- the collectives ---- */

static bool leads(const struct dt_comm *c)
{
    return c->local_rank == 0 && c->nodes > 1;
}

/* For the agent, which tells who waits for whom. */
static void note_call(struct dt_comm *c, uint64_t number, uint8_t kind, unsigned inside)
{
    if (c->shm.map.head)
        atomic_store_explicit(&c->shm.map.ranks[c->local_rank].call, number << 8 | inside | kind,
                              memory_order_relaxed);
}

static dt_result_t end(struct dt_comm *c, const struct dt_call *call, dt_result_t r)
{
    note_call(c, call->number, call->kind, 0);
    return r == DT_OK ? r : dt_comm_fail(c, say(c, call));
}

/* Names the next call. */
static dt_result_t begin(struct dt_comm *c, struct dt_call *call, enum dt_call_kind kind)
{
    uint32_t culprit;
    int stopped;

    call->kind = (uint8_t)kind;
    call->number = ++c->calls;
    if (c->failed != DT_OK)
        return dt_fail(c->failed, "%s", c->why);
    note_call(c, call->number, call->kind, DT_HOSTSHM_INSIDE);
    stopped = c->shm.map.head ? dt_hostshm_stopped(&c->shm.map, &culprit) : 0;
    return stopped ? end(c, call, dt_trouble(&c->trouble, (dt_result_t)stopped, culprit)) : DT_OK;
}

static dt_result_t all_reduce(struct dt_comm *c, const struct dt_call *call, const void *in,
                              void *out)
{
    size_t bytes = call->count * dt_dtype_size((dt_dtype_t)call->dtype);
    dt_result_t r;

    if (c->size == 1) {
        if (bytes && in != out)
            memcpy(out, in, bytes);
        return DT_OK;
    }
    if (c->nodes == 1)
        return dt_shm_all_reduce(&c->shm, call, in, out);
    r = dt_shm_reduce(&c->shm, call, in, out);
    if (r == DT_OK && leads(c))
        r = dt_ring_all_reduce(&c->ring, call, out, c->size);
    return r == DT_OK ? dt_shm_share(&c->shm, out, bytes, 0) : r;
}

dt_result_t dt_comm_all_reduce(struct dt_comm *c, const void *in, void *out, size_t count,
                               dt_dtype_t dtype, dt_op_t op)
{
    struct dt_call call = {
        .count = count, .dtype = (uint8_t)dtype, .op = (uint8_t)op, .root = -1
    };
    dt_result_t r = begin(c, &call, DT_CALL_ALL_REDUCE);

    return r == DT_OK ? end(c, &call, all_reduce(c, &call, in, out)) : r;
}

/* Root's host has it from root; the leaders pass it on; every other host has it from its leader. */
static dt_result_t broadcast(struct dt_comm *c, const struct dt_call *call, void *buf, size_t bytes)
{
    uint32_t root = (uint32_t)call->root;
    uint32_t home;
    dt_result_t r;

    if (c->size == 1)
        return DT_OK;
    r = dt_shm_begin(&c->shm, call);
    home = c->node_of[root];
    if (r == DT_OK && c->node == home)
        r = dt_shm_share(&c->shm, buf, bytes, (uint32_t)dt_u32s_find(&c->locals, root));
    if (r == DT_OK && leads(c))
        r = dt_ring_broadcast(&c->ring, call, buf, bytes, home);
    if (r == DT_OK && c->node != home)
        r = dt_shm_share(&c->shm, buf, bytes, 0);
    return r;
}

dt_result_t dt_comm_broadcast(struct dt_comm *c, void *buf, size_t count, dt_dtype_t dtype,
                              int root)
{
    struct dt_call call = { .count = count, .dtype = (uint8_t)dtype, .root = root };
    dt_result_t r = begin(c, &call, DT_CALL_BROADCAST);

    return r == DT_OK ? end(c, &call, broadcast(c, &call, buf, count * dt_dtype_size(dtype))) : r;
}

static dt_result_t meet(struct dt_comm *c, const struct dt_call *call)
{
    dt_result_t r;

    if (!c->shm.map.head)
        return DT_OK;
    r = dt_shm_begin(&c->shm, call);
    if (r == DT_OK && leads(c))
        r = dt_ring_barrier(&c->ring, call);
    if (r == DT_OK && c->nodes > 1)
        r = dt_shm_share(&c->shm, NULL, 0, 0);
    return r;
}

static dt_result_t meeting(struct dt_comm *c, enum dt_call_kind kind)
{
    struct dt_call call = { .root = -1 };
    dt_result_t r = begin(c, &call, kind);

    return r == DT_OK ? end(c, &call, meet(c, &call)) : r;
}

dt_result_t dt_comm_barrier(struct dt_comm *c)
{
    return meeting(c, DT_CALL_BARRIER);
}

dt_result_t dt_comm_match(struct dt_comm *c, enum dt_call_kind kind, size_t count, dt_dtype_t dtype,
                          dt_op_t op, int root)
{
    struct dt_call call = {
        .count = count, .dtype = (uint8_t)dtype, .op = (uint8_t)op, .device = 1, .root = root
    };
    dt_result_t r = begin(c, &call, kind);

    return r == DT_OK ? end(c, &call, meet(c, &call)) : r;
}

/* ---- joining and leaving ---- */

/* Of none where that cannot be learned: then waits yield. */
static void cpus(uint64_t bits[DT_HOSTSHM_CPUS / 64])
{
    cpu_set_t set;

    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    for (int i = 0; i < DT_HOSTSHM_CPUS; i++)
        bits[i / 64] |= (uint64_t)(CPU_ISSET(i, &set) != 0) << i % 64;
}

void dt_comm_alone(struct dt_comm *c)
{
    *c = (struct dt_comm){ .size = 1, .local_size = 1, .nodes = 1, .agent = { -1 } };
    c->ring = (struct dt_ring){ .next = -1, .prev = -1 };
}

/* False when nonsense: every node has ranks, and this one those that the welcome counts. */
static bool take_table(struct dt_comm *c, const struct dt_msg_table *table)
{
    const struct dt_msg_addr *a = table->addrs.v;
    uint32_t led = 0;

    if (table->generation != c->generation || table->addrs.n != (uint32_t)c->size)
        return false;
    memset(c->leaders, 0xff, c->nodes * sizeof *c->leaders);
    for (uint32_t rank = 0; rank < table->addrs.n; rank++) {
        uint32_t node = a[rank].node;

        if (node >= c->nodes || (node == c->node && c->locals.n == (uint32_t)c->local_size))
            return false;
        c->node_of[rank] = node;
        if (c->leaders[node] == UINT32_MAX) {
            c->leaders[node] = rank;
            led++;
        }
        if (node == c->node)
            c->locals.v[c->locals.n++] = rank;
    }
    return led == c->nodes && c->locals.n == (uint32_t)c->local_size &&
           c->locals.v[c->local_rank] == (uint32_t)c->rank;
}

static dt_result_t connect_ring(struct dt_comm *c, const struct dt_msg_table *table, int listener,
                                const uint8_t *secret)
{
    const struct dt_call init = { .kind = DT_CALL_INIT };
    struct dt_ring *r = &c->ring;
    uint32_t next = c->leaders[(c->node + 1) % c->nodes];
    uint32_t prev = c->leaders[(c->node + c->nodes - 1) % c->nodes];
    const struct dt_msg_addr *a = (const struct dt_msg_addr *)table->addrs.v + next;
    struct dt_tcp_plan plan = {
        .out = { .generation = c->generation, .me = (uint32_t)c->rank, .peer = next },
        .in = { .generation = c->generation, .me = (uint32_t)c->rank, .peer = prev },
        .host = a->host,
        .port = a->port,
        .listener = listener,
        .agent = &c->agent,
        .shm = &c->shm.map,
        .timeout_ms = CONNECT_MS,
    };

    *r = (struct dt_ring){ .me = c->node,
                           .n = c->nodes,
                           .rank = (uint32_t)c->rank,
                           .next_rank = next,
                           .prev_rank = prev,
                           .next = -1,
                           .prev = -1,
                           .agent = &c->agent,
                           .shm = &c->shm.map,
                           .trouble = &c->trouble };
    memcpy(plan.out.secret, secret, DT_SECRET_BYTES);
    memcpy(plan.in.secret, secret, DT_SECRET_BYTES);
    dt_result_t result = dt_tcp_connect(&plan, &r->next, &r->prev, &c->trouble);
    sodium_memzero(&plan, sizeof plan);
    return end(c, &init, result);
}

/* What the welcome says becomes what dt_rank and the others return. */
static dt_result_t take_welcome(struct dt_comm *c, const struct dt_rankmsg *m)
{
    uint64_t mine[DT_HOSTSHM_CPUS / 64] = { 0 };

    c->rank = (int)m->welcome.rank;
    c->size = (int)m->welcome.size;
    c->local_rank = (int)m->welcome.local_rank;
    c->local_size = (int)m->welcome.local_size;
    c->generation = m->welcome.generation;
    c->node = m->welcome.node_rank;
    c->nodes = m->welcome.nodes;
    if (c->size < 1 || c->rank >= c->size || c->local_size < 1 || c->local_rank >= c->local_size ||
        c->local_rank > c->rank || c->nodes < 1 || c->node >= c->nodes)
        return dt_fail(DT_ERR_VERSION, "rank %d: dtrun-agent's welcome makes no sense", c->rank);
    c->shm.me = (uint32_t)c->local_rank;
    c->shm.n = (uint32_t)c->local_size;
    c->shm.trouble = &c->trouble;
    cpus(mine);
    dt_shm_start(&c->shm, mine);
    c->node_of = calloc((size_t)c->size, sizeof *c->node_of);
    c->leaders = calloc(c->nodes, sizeof *c->leaders);
    c->locals.v = calloc((size_t)c->local_size, sizeof *c->locals.v);
    c->shm.ranks = c->locals.v;
    if (!c->node_of || !c->leaders || !c->locals.v)
        return dt_fail(DT_ERR_NOMEM, "rank %d: out of memory", c->rank);
    return DT_OK;
}

/* Frees what joining took; the agent keeps its end. */
static void release(struct dt_comm *c)
{
    dt_device_close(&c->device);
    dt_ring_close(&c->ring);
    dt_hostshm_unmap(&c->shm.map);
    dt_agentlink_close(&c->agent);
    free(c->node_of);
    free(c->leaders);
    free(c->locals.v);
    c->node_of = c->leaders = NULL;
    c->locals = (struct dt_u32s){ 0 };
}

static dt_result_t rendezvous(struct dt_comm *c, const struct dt_agentenv *env, int listener,
                              uint16_t port)
{
    struct dt_rankmsg welcome = { 0 };
    union dt_msg table;
    dt_result_t r = dt_agentlink_hello(&c->agent, env, port, &welcome, &c->shm.map);

    if (r == DT_OK)
        r = take_welcome(c, &welcome);
    note_call(c, 1, DT_CALL_INIT, DT_HOSTSHM_INSIDE);
    if (r == DT_OK)
        r = dt_agentlink_table(&c->agent, &c->shm.map, &table);
    if (r == DT_OK) {
        if (!take_table(c, &table.table))
            r = dt_fail(DT_ERR_VERSION, "rank %d: dtrun's table of ranks makes no sense", c->rank);
        else if (leads(c))
            r = connect_ring(c, &table.table, listener, welcome.welcome.secret);
        dt_msg_free(DT_MSG_TABLE, &table);
    }
    sodium_memzero(&welcome, sizeof welcome);
    return r;
}

dt_result_t dt_comm_join(struct dt_comm *c, const struct dt_agentenv *env)
{
    uint16_t port = 0;
    int listener = -1;
    dt_result_t r;

    dt_comm_alone(c);
    r = dt_agentlink_open(&c->agent, env);
    if (r == DT_OK && env->nodes > 1 && env->local_rank == 0) {
        listener = sodium_init() < 0 ? -1 : dt_inet_listen(&port);
        if (listener < 0)
            r = dt_fail(DT_ERR_IO, "rank %u: cannot listen for the other hosts: %s", env->rank,
                        strerror(errno));
    }
    if (r == DT_OK)
        r = rendezvous(c, env, listener, port);
    if (listener >= 0)
        close(listener);
    if (r == DT_OK)
        r = meeting(c, DT_CALL_INIT);
    if (r == DT_OK) {
        dt_shm_met(&c->shm);
        c->ring.spins = c->shm.spins ? RING_SPINS : 0;
        return r;
    }
    dt_comm_fail(c, r);
    release(c);
    return r;
}

dt_result_t dt_comm_leave(struct dt_comm *c)
{
    dt_result_t r;

    r = meeting(c, DT_CALL_FINALIZE);
    if (r == DT_OK && c->shm.map.head)
        atomic_fetch_or(&c->shm.map.ranks[c->local_rank].flags, DT_HOSTSHM_FINALIZED);
    release(c);
    return r;
}
