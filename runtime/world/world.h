/* What a process of a job has once, whatever communicators it makes: who it is, who else there is
 * and where, and the link to its agent. Nothing but the agent link, the listener and, in dt_init,
 * the tuning changes after dt_world_join. */
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
    char host[256];            /* the name of this one; "": not known */
    struct dt_msg_table table; /* by rank: its node, and where it listens; empty without an agent */
    struct dt_listener listener;   /* for ranks of other hosts */
    _Atomic uint32_t made;         /* communicators that this rank has named */
    _Atomic bool was_split;        /* there are, or were, others than DT_WORLD, on whatever ranks */
    struct dt_tuning_table tuning; /* rank 0's, once all have joined DT_WORLD */
    struct dt_agentlink agent;     /* fd -1: started by hand, a job of one rank */
    struct dt_hostshm shm;         /* this host's; its stop word is the job's */
};

/* Nobody yet: what the other functions begin with. */
void dt_world_none(struct dt_world *w);
/* A job of one rank, whatever the environment says. */
dt_result_t dt_world_alone(struct dt_world *w);
/* Says hello for the process that env names, and waits until every rank of the job has. The agent
 * link's stop and arg are set. */
dt_result_t dt_world_join(struct dt_world *w, const struct dt_agentenv *env);
/* Frees all but the numbers, the settings and the host's name, which other threads may be reading;
 * the agent keeps its end. */
void dt_world_leave(struct dt_world *w);

enum { DT_WORLD_NAME = 96 };

/* The name of the host of a rank; "": not known. */
const char *dt_world_host(const struct dt_world *w, uint32_t rank);
/* "rank 3 (host2)", or "rank 3"; what is long of a host's name is left out, for sentences with two
 * of them and two calls are to be told whole (DT_HOSTSHM_WHY). Returns text. */
const char *dt_world_name(const struct dt_world *w, uint32_t rank, char text[DT_WORLD_NAME]);

/* Ends the calls on a communicator, whose memory is shm, on all its ranks, through the agent; comm
 * 0: on all communicators of the job. why: a sentence. Any thread may call it; it does not wait. */
void dt_world_stop(struct dt_world *w, uint64_t comm, const struct dt_hostshm *shm,
                   dt_result_t result, uint32_t culprit, const char *why);

/* Of a communicator: "world", or "3.2": the second of which rank 3 of the job is the first. Returns
 * text. */
enum { DT_COMM_NAME = 32 };
const char *dt_comm_name(uint64_t id, char text[DT_COMM_NAME]);

#endif
