/* The connections of one communicator to ranks on other hosts, made when they are first needed.
 *
 * A call that needs a connection needs it in both ranks, so both help to make it: the lower rank
 * connects, and the higher one accepts at its listener. They verify each other. Two ranks may have
 * several connections, called streams, which share long flows (flow.h). */
#ifndef DT_TCP_MESH_H
#define DT_TCP_MESH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/tcp/alarm.h"
#include "runtime/world/listener.h"

enum {
    DT_MESH_CONNECT_S = 60,
    DT_MESHES = 3,    /* meshes of a communicator: collectives, and each direction of p2p */
    DT_MESH_FEW = 16, /* up to this many ranks, all may be connected with each other */
};

struct dt_mesh_link { /* the place for one connection with a peer */
    int fd;           /* non-blocking; -1: not connected */
    bool needed;      /* a call has asked for the connection */
    bool used;        /* something was sent along it */
    int low_water;    /* its SO_RCVLOWAT; 0: not set yet */
    bool mid_frame;   /* a frame has been sent in part */
    int64_t blame_at; /* if the connection ended: when the peer is blamed unless another reason is
                         known by then; else 0 */
    int error;        /* and why it broke: errno, or 0 if the peer closed it */
    int64_t silent_since; /* silence.h */
};

struct dt_mesh {
    uint64_t comm;
    uint32_t number; /* of this mesh in the communicator, below DT_MESHES; 0: collectives */
    uint32_t me;     /* in the communicator */
    uint32_t size;
    uint32_t streams;                /* to each peer, for large data; it may change between calls */
    const uint32_t *ranks;           /* the job's rank of each rank; NULL: the same numbers */
    const uint32_t *node_of;         /* the host of each rank; NULL: no two ranks share one */
    const struct dt_msg_addr *addrs; /* by the job's rank; outlives the mesh */
    struct dt_listener *listener;
    struct dt_alarm alarm;
    unsigned spins;             /* polls without success before a wait sleeps */
    struct dt_mesh_link *links; /* by stream, then by rank: see dt_mesh_link */
    size_t n_links;             /* 0 before the first connection is needed */
    struct dt_leg *legs;        /* memory for a call's legs (flow.c) */
    struct pollfd *polls;       /* memory to poll them */
    size_t room;                /* number of connections for which both suffice */
};

/* Returns a link, which must exist: dt_mesh_need makes links. */
static inline struct dt_mesh_link *dt_mesh_link(const struct dt_mesh *m, uint32_t peer,
                                                uint32_t stream)
{
    return &m->links[(size_t)stream * m->size + peer];
}

/* The rank of the communicator at the other end of a link. The inverse of dt_mesh_link. */
static inline uint32_t dt_mesh_peer(const struct dt_mesh *m, const struct dt_mesh_link *link)
{
    return (uint32_t)((size_t)(link - m->links) % m->size);
}

/* Frees the mesh. The peers see their connections end. */
void dt_mesh_close(struct dt_mesh *m);

/* Whether there are this many connections with a peer. */
bool dt_mesh_has(const struct dt_mesh *m, uint32_t peer, uint32_t streams);

/* Waits until there are this many connections with each of these ranks. Gives up on a rank that
 * cannot be reached after DT_MESH_CONNECT_S, but keeps waiting for one that has not entered the
 * call yet. */
dt_result_t dt_mesh_need(struct dt_mesh *m, const uint32_t *peers, size_t n, uint32_t streams);

/* For a link that has ended. A peer that has not heard that the connection was complete connects
 * again. If it has done so, the link gets the new connection. Never waits. */
void dt_mesh_renew(struct dt_mesh *m, struct dt_mesh_link *link);

/* Call before the first send along a link. If the peer has connected again because it did not learn
 * that it was accepted, the link gets that newer connection. */
void dt_mesh_use(struct dt_mesh *m, struct dt_mesh_link *link);

/* Serves peers that connect, without waiting. Returns DT_ERR_PEER, and sets the coll_error, if a
 * peer has connected again after this rank sent it data along any mesh: those data may be lost. */
dt_result_t dt_mesh_serve(const struct dt_mesh *m);

/* Stores as the coll_error that this rank lacks memory. Returns DT_ERR_NOMEM. */
dt_result_t dt_mesh_no_memory(const struct dt_mesh *m);

/* The job's rank of a peer, for messages. */
uint32_t dt_mesh_rank(const struct dt_mesh *m, uint32_t peer);

#endif
