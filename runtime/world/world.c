#include "runtime/world/world.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/error.h"
#include "runtime/wire/env.h"

const char *dt_comm_name(uint64_t id, char text[DT_COMM_NAME])
{
    if (id == 0)
        strcpy(text, "world");
    else if (dt_hostshm_is_of_saves(id))
        strcpy(text, "checkpoints");
    else
        snprintf(text, DT_COMM_NAME, "%" PRIu64 ".%" PRIu64, (id >> 32) - 1, id & UINT32_MAX);
    return text;
}

static const struct dt_world dti_nobody;
static const struct dt_world *_Atomic dti_own = &dti_nobody;

const struct dt_world *dt_world_own(void)
{
    return dti_own;
}

void dt_world_none(struct dt_world *w)
{
    dti_own = w;
    *w = (struct dt_world){ .settings = w->settings, .size = 1, .local_size = 1, .nodes = 1 };
    dt_agentlink_none(&w->agent);
    dt_listener_init(&w->listener);
}

dt_result_t dt_world_alone(struct dt_world *w)
{
    if (dt_hostshm_create_private(&w->shm) == 0)
        return DT_OK;
    return dt_fail_errno(DT_ERR_NOMEM, errno, "dt_init: no memory");
}

/* Stores what dt_rank and the like return. */
static dt_result_t take_welcome(struct dt_world *w, const struct dt_rankmsg *m)
{
    w->rank = (int)m->welcome.rank;
    w->size = (int)m->welcome.size;
    w->local_rank = (int)m->welcome.local_rank;
    w->local_size = (int)m->welcome.local_size;
    w->generation = m->welcome.generation;
    w->node = m->welcome.node_rank;
    w->nodes = m->welcome.nodes;
    dt_listener_admit(&w->listener, m->welcome.secret, w->generation, m->welcome.rank);
    if (w->size >= 1 && w->rank < w->size && w->local_size >= 1 && w->local_rank < w->local_size &&
        w->local_rank <= w->rank && w->nodes >= 1 && w->node < w->nodes)
        return DT_OK;
    return dt_fail(DT_ERR_VERSION, "rank %d: dtrun-agent's welcome is malformed", w->rank);
}

/* Checks that every host has ranks, and this host as many as the welcome says. */
static bool makes_sense(const struct dt_world *w, bool *seen)
{
    const struct dt_msg_addr *a = w->table.addrs.v;
    uint32_t nodes = 0, locals = 0;

    if (w->table.generation != w->generation || w->table.addrs.n != (uint32_t)w->size)
        return false;
    for (uint32_t rank = 0; rank < w->table.addrs.n; rank++) {
        if (a[rank].node >= w->nodes)
            return false;
        nodes += !seen[a[rank].node];
        seen[a[rank].node] = true;
        if (a[rank].node != w->node)
            continue;
        if (locals == (uint32_t)w->local_rank && rank != (uint32_t)w->rank)
            return false;
        locals++;
    }
    return nodes == w->nodes && locals == (uint32_t)w->local_size;
}

static dt_result_t take_table(struct dt_world *w)
{
    bool *seen = calloc(w->nodes, sizeof *seen);
    bool good = seen && makes_sense(w, seen);

    free(seen);
    if (!seen)
        return dt_fail(DT_ERR_NOMEM, "rank %d: out of memory", w->rank);
    if (!good)
        return dt_fail(DT_ERR_VERSION, "rank %d: dtrun's table of ranks is malformed", w->rank);
    snprintf(w->host, sizeof w->host, "%s", dt_world_host(w, (uint32_t)w->rank));
    return DT_OK;
}

static dt_result_t changed(const struct dt_world *w, const char *name, uint32_t said, uint32_t n,
                           const char *of)
{
    return dt_fail(DT_ERR_STATE,
                   "rank %d: the environment says %s=%u, but the job has %u %s: it was changed "
                   "between dtrun and the program",
                   w->rank, name, said, n, of);
}

/* A program that reads its size from the environment would partition its data for another size than
 * dt_size. And a rank that takes the job to have one host does not listen, so other hosts
 * could not reach it. */
static dt_result_t check_numbers(const struct dt_world *w, const struct dt_agentenv *env)
{
    if (env->size != (uint32_t)w->size)
        return changed(w, DT_ENV_SIZE, env->size, (uint32_t)w->size, "ranks");
    if (env->nodes <= 1 && w->nodes != 1)
        return changed(w, DT_ENV_NODES, env->nodes, w->nodes, "hosts");
    return DT_OK;
}

static dt_result_t rendezvous(struct dt_world *w, const struct dt_agentenv *env, uint16_t port)
{
    struct dt_rankmsg welcome = { 0 };
    union dt_msg table;
    dt_result_t r = dt_agentlink_hello(&w->agent, env, port, &welcome, &w->shm);

    if (r == DT_OK)
        r = take_welcome(w, &welcome);
    if (r == DT_OK)
        r = check_numbers(w, env);
    sodium_memzero(&welcome, sizeof welcome);
    if (r == DT_OK) {
        dt_hostshm_note_call(&w->shm.ranks[w->local_rank], 1, DT_HOSTSHM_INSIDE | DT_CALL_INIT);
        r = dt_agentlink_table(&w->agent, &w->shm, &table);
    }
    if (r != DT_OK)
        return r;
    w->table = table.table;
    return take_table(w);
}

dt_result_t dt_world_join(struct dt_world *w, const struct dt_agentenv *env)
{
    uint16_t port = 0;
    dt_result_t r;

    r = dt_agentlink_open(&w->agent, env);
    if (r == DT_OK && env->nodes > 1 && dt_listener_open(&w->listener, &port) < 0)
        r = dt_fail_errno(
            DT_ERR_IO, errno, "rank %u: cannot listen for the other hosts%s", env->rank,
            errno == EADDRINUSE ? ", as no port is free (see net.ipv4.ip_local_port_range)" : "");
    if (r == DT_OK)
        r = rendezvous(w, env, port);
    if (r == DT_OK)
        return r;
    if (w->shm.head && dt_result_is_final(r))
        dt_world_stop(w, 0, &w->shm, r, (uint32_t)w->rank, dt_last_error());
    dt_world_leave(w);
    return r;
}

const char *dt_world_host(const struct dt_world *w, uint32_t rank)
{
    const struct dt_msg_addr *a = w->table.addrs.v;

    return rank < w->table.addrs.n && a[rank].node < w->table.hosts.n
               ? w->table.hosts.v[a[rank].node]
               : "";
}

enum { HOST_SHOWN = 64 }; /* the longest host name of Linux; aliases may be longer */

const char *dt_world_name(const struct dt_world *w, uint32_t rank, char text[DT_WORLD_NAME])
{
    const char *host = rank == (uint32_t)w->rank ? w->host : dt_world_host(w, rank);

    if (*host)
        snprintf(text, DT_WORLD_NAME, "rank %u (%.*s%s)", rank, HOST_SHOWN, host,
                 strlen(host) > HOST_SHOWN ? "..." : "");
    else
        snprintf(text, DT_WORLD_NAME, "rank %u", rank);
    return text;
}

void dt_world_leave(struct dt_world *w)
{
    dt_listener_close(&w->listener);
    dt_hostshm_unmap(&w->shm);
    dt_agentlink_close(&w->agent);
    dt_msg_free(DT_MSG_TABLE, (union dt_msg *)&w->table);
    w->table = (struct dt_msg_table){ 0 };
}

/* Whether the GPU or NCCL of another rank has ended all communicators. */
static bool is_of_other_gpu(const struct dt_world *w, uint64_t comm, dt_result_t result,
                            uint32_t culprit)
{
    return comm == 0 && culprit != (uint32_t)w->rank &&
           (result == DT_ERR_CUDA || result == DT_ERR_NCCL);
}

void dt_world_note_lost(struct dt_world *w, uint64_t comm, dt_result_t result, uint32_t culprit)
{
    _Atomic uint32_t *flags = &w->shm.ranks[w->local_rank].flags;

    if (result == DT_ERR_PEER || dt_hostshm_stopped(&w->shm, NULL) == DT_ERR_TIMEOUT)
        atomic_fetch_or(flags, DT_HOSTSHM_PEER_LOST);
    if (is_of_other_gpu(w, comm, result, culprit))
        atomic_fetch_or(flags, DT_HOSTSHM_GPU_LOST);
}

/* Tells the agent before any rank can see the stop and exit. So the agent learns of this failure
 * before it learns of the deaths that follow, and none of those is taken for the cause. */
void dt_world_stop(struct dt_world *w, uint64_t comm, const struct dt_hostshm *shm,
                   dt_result_t result, uint32_t culprit, const char *why)
{
    int stopped = dt_hostshm_stopped(shm, NULL);

    dt_world_note_lost(w, comm, result, culprit);
    if (result != DT_ERR_PEER && !stopped)
        dt_agentlink_failed(&w->agent, comm, result, culprit, why, false);
    /* the agent knows which rank died; a lost peer ends all communicators */
    if (result == DT_ERR_PEER) {
        dt_hostshm_stop(shm, result, culprit);
        dt_hostshm_stop(&w->shm, result, culprit);
    } else {
        dt_hostshm_stop_because(shm, result, culprit, why);
    }
}
