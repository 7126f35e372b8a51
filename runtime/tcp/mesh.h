/* The connections of one communicator to ranks on other hosts, made when they are first needed.
 *
 * Both ends come to need a connection, since every collective needs it on both sides: the lower
 * rank then calls and the higher one accepts the connection at its listener. The other end of every
 * connection is proved. Two ranks may have several: streams, which share what is long (flow.h). */
#ifndef DT_TCP_MESH_H
#define DT_TCP_MESH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/tcp/alarm.h"
#include "runtime/world/listener.h"

enum {
    DT_MESH_CONNECT_S = 60,
    DT_MESH_LANES = 3, /* meshes of a communicator: collectives, and each direction of p2p */
    DT_MESH_FEW = 16,  /* up to so many ranks, each may be connected with every other */
};

struct dt_mesh_conn {
    int fd; /* non-blocking, or -1: not there (yet) */
    bool needed;
    bool used;      /* something was sent along it */
    int wanted;     /* bytes without which a rank that sleeps is not woken; 0: none yet */
    bool mid_frame; /* a frame has been sent in part */
    int64_t broken; /* the connection ended: until when to wait for the reason; 0: it did not */
};

struct dt_mesh {
    uint64_t comm;
    uint32_t lane; /* which of the communicator's meshes, below DT_MESH_LANES; 0: collectives' */
    uint32_t me;   /* ranks of the communicator */
    uint32_t size;
    uint32_t streams; /* to each peer, where there is much to move; it may change between calls */
    const uint32_t *ranks;           /* the job's rank of each; NULL: the same */
    const uint32_t *node_of;         /* by rank: its host; NULL: none share one */
    const struct dt_msg_addr *addrs; /* by the job's rank; outlives this */
    struct dt_listener *listener;
    struct dt_alarm alarm;
    unsigned spins;             /* fruitless looks at the connections before a wait sleeps */
    struct dt_mesh_conn *links; /* by stream, then by rank: see dt_mesh_link */
    size_t n_links;             /* 0 before anything is needed */
    struct dt_leg *legs;        /* room for what moves along so many connections (flow.c), */
    struct pollfd *polls;       /* and for a wait on them */
    size_t room;
};

/* One that has been needed. */
static inline struct dt_mesh_conn *dt_mesh_link(const struct dt_mesh *m, uint32_t peer,
                                                uint32_t stream)
{
    return &m->links[(size_t)stream * m->size + peer];
}

/* Frees; whoever is at the other ends sees the connections end. */
void dt_mesh_close(struct dt_mesh *m);

/* Whether there are so many connections with a peer. */
bool dt_mesh_has(const struct dt_mesh *m, uint32_t peer, uint32_t streams);

/* Waits for so many connections with each of these ranks. A rank that cannot be reached is given up
 * after DT_MESH_CONNECT_S; one that does not come to it is waited for. */
dt_result_t dt_mesh_need(struct dt_mesh *m, const uint32_t *peers, size_t n, uint32_t streams);

/* Of a link that has ended and that nothing waits for: whoever made it may not have heard that it
 * was through, and calls again. Takes that call in its place, if it is there; never waits. */
void dt_mesh_renew(struct dt_mesh *m, struct dt_mesh_conn *link);

/* Call before the first send along a link. If the peer has connected again because it did not learn
 * that it was accepted, the link becomes that newer connection. */
void dt_mesh_use(struct dt_mesh *m, struct dt_mesh_conn *link);

/* Serves peers that connect, without waiting. DT_ERR_PEER, which is noted as the coll_error: one
 * has connected again to which this rank had sent data along any mesh, so these may be lost. */
dt_result_t dt_mesh_hear(const struct dt_mesh *m);

/* Notes as the coll_error that this rank lacks memory; returns DT_ERR_NOMEM. */
dt_result_t dt_mesh_no_memory(const struct dt_mesh *m);

/* The job's rank, for messages. */
uint32_t dt_mesh_rank(const struct dt_mesh *m, uint32_t peer);

#endif
