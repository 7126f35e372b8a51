#include "runtime/comm.h"

#include <assert.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/blame.h"
#include "runtime/collective.h"
#include "runtime/host/flow.h"
#include "runtime/wire/env.h"

static_assert((int)DT_HOSTSHM_PEER_DIED == (int)DT_ERR_PEER &&
                  (int)DT_HOSTSHM_TIMED_OUT == (int)DT_ERR_TIMEOUT,
              "the agent names the reason in our terms");

enum { NET_SPINS = 200 };

/* ---- failing ---- */

dt_result_t dt_comm_fail(struct dt_comm *c, dt_result_t result)
{
    if (!dt_result_is_final(result) || c->failed != DT_OK)
        return result;
    c->failed = result;
    snprintf(c->why, sizeof c->why, "%s", dt_last_error());
    if (c->trouble.code != result)
        dt_trouble(&c->trouble, result, (uint32_t)c->rank);
    dt_world_stop(c->world, result, c->trouble.rank, c->why);
    dt_flow_fail(&c->mesh, result);
    return result;
}

dt_result_t dt_comm_check(struct dt_comm *c)
{
    const char *why;
    uint32_t culprit;
    int stopped;

    if (c->failed != DT_OK)
        return dt_fail(c->failed, "%s", c->why);
    stopped = dt_hostshm_stopped(&c->shm.map, &culprit);
    if (!stopped)
        return DT_OK;
    dt_trouble(&c->trouble, (dt_result_t)stopped, culprit);
    why = dt_hostshm_why(&c->shm.map);
    if (stopped == DT_ERR_PEER && *why)
        return dt_comm_fail(c, dt_fail(DT_ERR_PEER, "rank %d: %s", c->rank, why));
    return dt_comm_fail(c, dt_fail((dt_result_t)stopped, "rank %d: rank %u %s", c->rank, culprit,
                                   stopped == DT_ERR_PEER ? "died or left" : "failed"));
}

/* ---- calls ---- */

/* For the agent, which tells who waits for whom. */
static void note(struct dt_comm *c, const struct dt_call *call, unsigned inside)
{
    dt_hostshm_note_call(&c->shm.map.ranks[c->local_rank], call->number, inside | call->kind);
}

dt_result_t dt_comm_begin(struct dt_comm *c, struct dt_call *call, enum dt_call_kind kind)
{
    uint32_t culprit;
    int stopped;

    call->kind = (uint8_t)kind;
    call->number = ++c->calls;
    if (c->failed != DT_OK)
        return dt_fail(c->failed, "%s", c->why);
    note(c, call, DT_HOSTSHM_INSIDE);
    stopped = dt_hostshm_stopped(&c->shm.map, &culprit);
    if (!stopped)
        return DT_OK;
    return dt_comm_end(c, call, dt_trouble(&c->trouble, (dt_result_t)stopped, culprit));
}

dt_result_t dt_comm_end(struct dt_comm *c, const struct dt_call *call, dt_result_t r)
{
    note(c, call, 0);
    return r == DT_OK ? r : dt_comm_fail(c, dt_blame(c, call));
}

/* ---- opening and closing ---- */

/* Of none where that cannot be learned: then waits yield. */
static void cpus(uint64_t bits[DT_HOSTSHM_CPUS / 64])
{
    cpu_set_t set;

    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    for (int i = 0; i < DT_HOSTSHM_CPUS; i++)
        bits[i / 64] |= (uint64_t)(CPU_ISSET(i, &set) != 0) << i % 64;
}

/* The table of a job of one rank is empty. */
static uint32_t node_in_job(const struct dt_world *w, uint32_t rank)
{
    return w->table.addrs.n ? ((const struct dt_msg_addr *)w->table.addrs.v)[rank].node : w->node;
}

static void place(struct dt_comm *c)
{
    memset(c->leaders, 0xff, c->nodes * sizeof *c->leaders);
    for (uint32_t rank = 0; rank < (uint32_t)c->size; rank++) {
        uint32_t node = node_in_job(c->world, rank);

        c->node_of[rank] = node;
        if (c->leaders[node] == UINT32_MAX)
            c->leaders[node] = rank;
        if (node == c->node)
            c->locals.v[c->locals.n++] = rank;
    }
}

/* Frees what opening took. */
static void release(struct dt_comm *c)
{
    dt_device_close(&c->device);
    dt_lanes_close(&c->lanes);
    dt_mesh_close(&c->mesh);
    free(c->node_of);
    free(c->leaders);
    free(c->locals.v);
    c->node_of = c->leaders = NULL;
    c->locals = (struct dt_u32s){ 0 };
}

static dt_result_t take(struct dt_comm *c, struct dt_world *w)
{
    uint64_t mine[DT_HOSTSHM_CPUS / 64] = { 0 };

    *c = (struct dt_comm){ .world = w,
                           .rank = w->rank,
                           .size = w->size,
                           .local_rank = w->local_rank,
                           .local_size = w->local_size,
                           .node = w->node,
                           .nodes = w->nodes };
    c->node_of = calloc((size_t)c->size, sizeof *c->node_of);
    c->leaders = calloc(c->nodes, sizeof *c->leaders);
    c->locals.v = calloc((size_t)c->local_size, sizeof *c->locals.v);
    if (!c->node_of || !c->leaders || !c->locals.v)
        return dt_fail(DT_ERR_NOMEM, "rank %d: out of memory", c->rank);
    place(c);
    c->shm = (struct dt_shm){ .map = w->shm,
                              .me = (uint32_t)c->local_rank,
                              .n = (uint32_t)c->local_size,
                              .ranks = c->locals.v,
                              .trouble = &c->trouble };
    cpus(mine);
    dt_shm_start(&c->shm, mine);
    return DT_OK;
}

/* The ways to other hosts, which are made when they are needed. */
static void set_out(struct dt_comm *c)
{
    const char *in_order = getenv(DT_ENV_DETERMINISTIC);
    struct dt_world *w = c->world;

    c->mesh = (struct dt_mesh){ .comm = c->id,
                                .me = (uint32_t)c->rank,
                                .size = (uint32_t)c->size,
                                .addrs = w->table.addrs.v,
                                .door = &w->door,
                                .alarm = { &w->agent, &c->shm.map, w->bell, &c->trouble } };
    c->lanes = (struct dt_lanes){ .mesh = &c->mesh,
                                  .peers = c->leaders,
                                  .me = c->node,
                                  .n = c->nodes,
                                  .in_order = in_order && strcmp(in_order, "1") == 0 };
}

dt_result_t dt_comm_open(struct dt_comm *c, struct dt_world *w)
{
    dt_result_t r = take(c, w);

    if (r == DT_OK) {
        set_out(c);
        r = dt_comm_meet(c, DT_CALL_INIT);
    }
    if (r == DT_OK) {
        dt_shm_met(&c->shm);
        c->mesh.spins = c->shm.spins ? NET_SPINS : 0;
        return r;
    }
    dt_comm_fail(c, r);
    release(c);
    return r;
}

dt_result_t dt_comm_close(struct dt_comm *c)
{
    dt_result_t r = dt_comm_meet(c, DT_CALL_FINALIZE);

    if (r == DT_OK)
        atomic_fetch_or(&c->shm.map.ranks[c->local_rank].flags, DT_HOSTSHM_FINALIZED);
    release(c);
    return r;
}
