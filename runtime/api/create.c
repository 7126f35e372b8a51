#include "runtime/api/create.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/comm/collective.h"
#include "runtime/gpu/gpu.h"
#include "runtime/p2p/p2p.h"
#include "runtime/shm/cma.h"
#include "runtime/wire/highfd.h"

/* How often a rank polls its connections before it sleeps, if each rank has a CPU of its own. */
enum { SPINS = 200 };

/* ---- which rank is on which host ---- */

/* A job of one rank has an empty table. */
static uint32_t node_in_job(const struct dt_world *w, uint32_t rank)
{
    return w->table.addrs.n ? ((const struct dt_msg_addr *)w->table.addrs.v)[rank].node : w->node;
}

/* Numbers the job's hosts that have ranks of this communicator, in their order. */
static void number_nodes(struct dt_comm *c, uint32_t *number)
{
    for (int rank = 0; rank < c->size; rank++)
        number[node_in_job(c->world, c->ranks[rank])] = 1;
    for (uint32_t node = 0; node < c->world->nodes; node++)
        number[node] = number[node] ? c->nodes++ : UINT32_MAX;
    c->node = number[c->world->node];
}

static void place_ranks(struct dt_comm *c, const uint32_t *number)
{
    for (uint32_t rank = 0; rank < (uint32_t)c->size; rank++) {
        uint32_t node = number[node_in_job(c->world, c->ranks[rank])];

        c->node_of[rank] = node;
        if (c->ranks[rank] == (uint32_t)c->world->rank)
            c->rank = (int)rank;
        if (node != c->node)
            continue;
        c->local_ranks[c->locals.n] = c->ranks[rank];
        c->locals.v[c->locals.n++] = rank;
    }
    c->local_rank = (int)dt_u32s_find(&c->locals, (uint32_t)c->rank);
    c->local_size = (int)c->locals.n;
}

/* Finds the ranks with this rank's local rank on other hosts, and how many leaders each host
 * has. */
static void find_leaders(struct dt_comm *c)
{
    const struct dt_host_ranks *r = &c->host_ranks;

    for (uint32_t node = 0; node < c->nodes; node++) {
        if ((uint32_t)c->local_rank < dt_host_ranks_count(r, node))
            c->leader_peers[node] = r->ranks[r->first[node] + (uint32_t)c->local_rank];
    }
    c->hierarchical =
        (struct dt_hierarchical){ .shm = &c->shm, .leaders = &c->leaders, .host_ranks = r };
    dt_hierarchical_init(&c->hierarchical);
}

static dt_result_t set_ranks(struct dt_comm *c, const uint32_t *ranks)
{
    size_t n = (size_t)c->size;
    uint32_t *number = calloc(c->world->nodes, sizeof *number);

    c->ranks = calloc(n, sizeof *c->ranks);
    c->node_of = calloc(n, sizeof *c->node_of);
    c->leader_peers = calloc(c->world->nodes, sizeof *c->leader_peers);
    c->host_ranks.ranks = calloc(n, sizeof *c->host_ranks.ranks);
    c->host_ranks.first = calloc((size_t)c->world->nodes + 1, sizeof *c->host_ranks.first);
    c->locals.v = calloc(n, sizeof *c->locals.v);
    c->local_ranks = calloc(n, sizeof *c->local_ranks);
    if (!number || !c->ranks || !c->node_of || !c->leader_peers || !c->host_ranks.ranks ||
        !c->host_ranks.first || !c->locals.v || !c->local_ranks) {
        free(number);
        return dt_fail(DT_ERR_NOMEM, "rank %d: out of memory", c->world->rank);
    }
    for (uint32_t i = 0; i < n; i++)
        c->ranks[i] = ranks ? ranks[i] : i;
    number_nodes(c, number);
    place_ranks(c, number);
    dt_host_ranks_fill(&c->host_ranks, c->node_of, (uint32_t)c->size, c->nodes);
    free(number);
    return DT_OK;
}

/* ---- shared memory and connections ---- */

/* Leaves all bits 0 if the CPUs are unknown. Waiting ranks then yield their CPU. */
static void own_cpus(uint64_t bits[DT_HOSTSHM_CPUS / 64])
{
    cpu_set_t set;

    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    for (int i = 0; i < DT_HOSTSHM_CPUS; i++)
        bits[i / 64] |= (uint64_t)(CPU_ISSET(i, &set) != 0) << i % 64;
}

static dt_result_t job_stopped(const struct dt_world *w)
{
    uint32_t culprit;
    int code = dt_hostshm_stopped(&w->shm, &culprit);
    const char *why = dt_hostshm_why(&w->shm);
    char ending[DT_HOSTSHM_ENDING];

    if (culprit == UINT32_MAX && !*why)
        dt_fail((dt_result_t)code, "rank %d: dtrun-agent of this host has ended", w->rank);
    else if (code == DT_ERR_PEER && !*why)
        dt_fail(DT_ERR_PEER, "rank %d: rank %u died or left%s", w->rank, culprit,
                dt_hostshm_ending_text(&w->shm, culprit, ending));
    else
        dt_fail((dt_result_t)code, "rank %d: the job has been stopped: %s", w->rank,
                *why ? why : dt_strerror((dt_result_t)code));
    dt_error_details()->rank = (int)culprit;
    return (dt_result_t)code;
}

static dt_result_t map_memory(struct dt_comm *c)
{
    struct dt_world *w = c->world;
    dt_result_t r;

    if (c->id == 0) {
        c->shm.map = w->shm;
        return DT_OK;
    }
    if (w->agent.fd >= 0) {
        r = dt_agentlink_want_memory(&w->agent, c->id, (uint32_t)c->local_size, (uint32_t)c->size,
                                     w->generation, &c->shm.map);
        c->lent = r == DT_OK;
        return r == DT_ERR_STATE ? job_stopped(w) : r;
    }
    if (dt_hostshm_create_private(&c->shm.map) == 0)
        return DT_OK;
    return dt_fail_errno(DT_ERR_NOMEM, errno, "rank %d: no memory for a communicator", w->rank);
}

/* The agent needs the members to tell which rank waits for which. */
static void write_members(const struct dt_comm *c)
{
    for (uint32_t i = 0; i < c->shm.map.size; i++)
        atomic_store_explicit(&c->shm.map.members[i], c->ranks[i] + 1, memory_order_relaxed);
}

static dt_result_t open_shared_memory(struct dt_comm *c)
{
    uint64_t mine[DT_HOSTSHM_CPUS / 64] = { 0 };
    dt_result_t r = map_memory(c);

    if (r != DT_OK)
        return r;
    write_members(c);
    c->shm.comm = c->id;
    c->shm.me = (uint32_t)c->local_rank;
    c->shm.n = (uint32_t)c->local_size;
    c->shm.ranks = c->local_ranks;
    c->shm.coll_error = &c->coll_error;
    c->shm.tuning = &c->tuning;
    own_cpus(mine);
    dt_shm_start(&c->shm, mine);
    if (c->world->settings.shows_memory && c->local_size > 1)
        dt_cma_introduce(&c->shm.map.ranks[c->local_rank].card);
    return DT_OK;
}

/* Prepares connections to other hosts. They are made when they are first needed. */
static dt_result_t open_connections(struct dt_comm *c)
{
    struct dt_world *w = c->world;

    c->bell = dt_fd_high(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (c->bell < 0)
        return dt_fail_errno(DT_ERR_IO, errno, "rank %d: eventfd", w->rank);
    c->mesh = (struct dt_mesh){ .comm = c->id,
                                .me = (uint32_t)c->rank,
                                .size = (uint32_t)c->size,
                                .streams = 1,
                                .ranks = c->ranks,
                                .node_of = c->node_of,
                                .addrs = w->table.addrs.v,
                                .listener = &w->listener,
                                .alarm = { &w->agent, &c->shm.map, c->bell, &c->coll_error } };
    c->leaders = (struct dt_leaders){ .mesh = &c->mesh,
                                      .peers = c->leader_peers,
                                      .me = c->node,
                                      .n = c->nodes,
                                      .tuning = &c->tuning,
                                      .in_order = w->settings.deterministic };
    find_leaders(c);
    return DT_OK;
}

/* ---- joining and leaving ---- */

static dt_result_t create_parts(struct dt_comm *c, const uint32_t *ranks)
{
    dt_result_t r = dt_gpu_open(c);

    if (r == DT_OK)
        r = set_ranks(c, ranks);
    if (r == DT_OK)
        r = open_shared_memory(c);
    return r == DT_OK && c->nodes > 1 ? open_connections(c) : r;
}

dt_result_t dt_comm_create(struct dt_comm *c, struct dt_world *w, uint64_t id,
                           const uint32_t *ranks, uint32_t n)
{
    dt_result_t r;

    *c = (struct dt_comm){
        .world = w, .id = id, .size = (int)n, .bell = -1, .tuning = dt_tuning_builtin
    };
    c->shm.ring = dt_ring_open(id);
    r = create_parts(c, ranks);
    return r == DT_OK ? r : dt_comm_fail(c, r);
}

/* Several leaders already have connections side by side, so each needs fewer streams. */
static uint32_t streams_per_leader(const struct dt_comm *c)
{
    uint64_t n_leaders = c->hierarchical.n_leaders ? c->hierarchical.n_leaders : 1;
    uint64_t n = (c->tuning.net_streams + n_leaders - 1) / n_leaders;

    return n ? (uint32_t)n : 1;
}

static void choose_tuning(struct dt_comm *c, void *table)
{
    dt_tuning_choose(&c->tuning, table, (uint32_t)c->local_size, c->nodes);
    c->streams = c->mesh.streams = streams_per_leader(c);
}

static void choose_waits(struct dt_comm *c)
{
    dt_shm_choose_wait(&c->shm);
    c->mesh.spins = c->shm.crowded ? 0 : SPINS;
}

dt_result_t dt_comm_join(struct dt_comm *c, enum dt_call_kind kind)
{
    struct dt_tuning_table *tuning = &c->world->tuning;
    dt_result_t r;

    if (c->id == 0) {
        r = dt_comm_first_barrier(c, kind, tuning, sizeof *tuning, choose_tuning);
    } else {
        choose_tuning(c, tuning);
        r = dt_comm_barrier(c, kind);
    }
    if (r == DT_OK)
        choose_waits(c);
    return r;
}

void dt_comm_add_tuning(struct dt_comm *c, const struct dt_tuning_table *table)
{
    dt_tuning_add(&c->tuning, table, (uint32_t)c->local_size, c->nodes);
    c->mesh.streams = streams_per_leader(c);
    choose_waits(c);
}

void dt_comm_release(struct dt_comm *c)
{
    dt_p2p_close(c);
    dt_ring_close(c->shm.ring);
    dt_gpu_close(c);
    dt_leaders_close(&c->leaders);
    dt_mesh_close(&c->mesh);
    dt_listener_forget(&c->world->listener, c->id);
    if (c->bell >= 0)
        close(c->bell);
    if (c->id != 0) {
        if (c->lent)
            dt_agentlink_free_memory(&c->world->agent, c->id);
        dt_hostshm_unmap(&c->shm.map);
    }
    free(c->ranks);
    free(c->node_of);
    free(c->leader_peers);
    free(c->host_ranks.ranks);
    free(c->host_ranks.first);
    free(c->locals.v);
    free(c->local_ranks);
}

dt_result_t dt_comm_leave(struct dt_comm *c)
{
    dt_result_t r = dt_comm_barrier(c, c->id == 0 ? DT_CALL_FINALIZE : DT_CALL_FREE);

    if (r == DT_OK && c->id == 0)
        atomic_fetch_or(&c->shm.map.ranks[c->local_rank].flags, DT_HOSTSHM_FINALIZED);
    return r;
}
