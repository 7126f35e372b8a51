/* What a process has once, however many communicators it makes: its rank, the other ranks and their
 * hosts, and the link to its agent. After dt_world_join only the agent link, the listener, the
 * atomic members and, in dt_init, the tuning change. */
#ifndef DT_WORLD_WORLD_H
#define DT_WORLD_WORLD_H

#include <stdint.h>

#include "runtime/base/tuning.h"
#include "runtime/dtrun.h"
#include "runtime/wire/hostshm.h"
#include "runtime/wire/msg.h"
#include "runtime/world/agentlink.h"
#include "runtime/world/config.h"
#include "runtime/world/listener.h"

struct dt_world {
    struct dt_settings settings;
    int rank;
    int size;
    int local_rank;
    int local_size;
    uint32_t generation;
    uint32_t node;
    uint32_t nodes;
    char host[256]; /* of this host; "": unknown */
    /* By rank: its host and the address where it listens; empty without an agent. */
    struct dt_msg_table table;
    struct dt_listener listener; /* for ranks on other hosts */
    _Atomic uint32_t made;       /* communicators whose id contains this rank */
    _Atomic bool was_split;      /* the program has or had communicators of its own, on any ranks */
    struct dt_tuning_table tuning; /* of rank 0, once all ranks have joined DT_WORLD */
    struct dt_agentlink agent;     /* fd -1: started by hand, a job of one rank */
    struct dt_hostshm shm;         /* of this host; its abort word is the job's */
};

/* Initialises w, this process's only world, for a process that belongs to no job. Call it first. */
void dt_world_none(struct dt_world *w);
/* That world, for errors of calls that have no communicator. */
const struct dt_world *dt_world_own(void);
/* Makes this process a job of one rank, whatever the environment says. */
dt_result_t dt_world_alone(struct dt_world *w);
/* Joins the job as the rank that env names, and waits until every rank has joined. The caller has
 * set the agent link's stop and lost. */
dt_result_t dt_world_join(struct dt_world *w, const struct dt_agentenv *env);
/* Frees everything but the numbers, the settings and the host's name, which other threads may be
 * reading. The agent's end of the socket stays open. */
void dt_world_leave(struct dt_world *w);

enum { DT_WORLD_NAME = 96 };

/* The name of a rank's host; "": unknown. */
const char *dt_world_host(const struct dt_world *w, uint32_t rank);
/* Writes "rank 3 (host2)", or "rank 3". A long host name is shortened, because a sentence with two
 * names and two calls must fit (DT_HOSTSHM_WHY). Returns text. */
const char *dt_world_name(const struct dt_world *w, uint32_t rank, char text[DT_WORLD_NAME]);

/* Tells the agent, if a call on comm is to return that a peer was lost, that the death of this rank
 * will be a consequence; or so will its failure, if the GPU of another rank has ended all
 * communicators. */
void dt_world_note_lost(struct dt_world *w, uint64_t comm, dt_result_t result, uint32_t culprit);
/* Ends the calls on a communicator on all of its ranks, through its memory shm and the agent. comm
 * 0: on all communicators of the job. why is a sentence. Does not wait. Any thread may call it. */
void dt_world_stop(struct dt_world *w, uint64_t comm, const struct dt_hostshm *shm,
                   dt_result_t result, uint32_t culprit, const char *why);

/* The name of a communicator: "world", "checkpoints" (checkpoint/background.h), or "3.2" for one
 * whose first rank is rank 3; the 2 tells it from others that begin with rank 3. Returns text. */
enum { DT_COMM_NAME = 32 };
const char *dt_comm_name(uint64_t id, char text[DT_COMM_NAME]);

#endif
