/* A communicator: some ranks of a job, the connections between them, and the calls that they make.
 *
 * Every rank makes the same calls in the same order, one at a time. After a final failure
 * (dt_result_is_final) a communicator stays failed: every later call returns the same code. All
 * functions that return dt_result_t have set dt_last_error when they fail. Unless they say
 * otherwise they are for the thread that holds the communicator's slot.
 *
 * Ranks are those of the communicator, but for struct dt_coll_error and the words that stop it:
 * these blame ranks of the job. */
#ifndef DT_COMM_COMM_H
#define DT_COMM_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/coll_error.h"
#include "runtime/base/error.h"
#include "runtime/base/tuning.h"
#include "runtime/coll/hierarchical.h"
#include "runtime/coll/leaders.h"
#include "runtime/coll/roster.h"
#include "runtime/comm/pairnotes.h"
#include "runtime/dtrun.h"
#include "runtime/shm/shm.h"
#include "runtime/world/world.h"

struct dt_comm {
    struct dt_world *world;
    struct dt_slot *slot;
    uint64_t id; /* 0: all ranks of the job; the same on all ranks of it, and on no others */
    int rank;
    int size;
    int local_rank; /* among those of this host */
    int local_size;
    bool lent;     /* its memory is of the agent, which watches its calls */
    uint32_t node; /* among the hosts that have ranks of it */
    uint32_t nodes;
    uint32_t *ranks;   /* the job's, by rank */
    uint32_t *node_of; /* by rank */
    struct dt_roster roster;
    uint32_t *lane;        /* by node: the rank there that has this rank's local rank */
    struct dt_u32s locals; /* the ranks of this host, by local rank */
    uint32_t *local_ranks; /* the same, the job's */
    uint64_t calls;
    uint32_t limit_ms; /* for how long the call may wait; 0: as dtrun says; DT_HOSTSHM_NO_LIMIT */
    struct dt_p2p **channels;  /* by peer, to it and from it (p2p.h); NULL before the first */
    _Atomic uint32_t passing;  /* calls between two ranks that are not over */
    struct dt_pairnotes notes; /* those in which threads wait */
    bool shut;                 /* for threads that keep it in its slot: no call may begin */
    /* Between dt_join_begin and dt_join: announces a call that this rank is about to make (join.h).
     * Else NULL: all ranks have data. */
    dt_result_t (*announce)(struct dt_comm *c, const struct dt_call *call);
    bool announcing;     /* the call is an announcement, or has been announced */
    struct dt_call next; /* what this rank announces: the call that it is to make, or dt_join */
    const struct dt_call *whole; /* the program's call, of which this rank makes pieces; or NULL */
    const dt_all_reduce_options_t *announced; /* of the all-reduce that begins; NULL: none */
    dt_result_t failed;                       /* DT_OK, or what every call returns */
    dt_error_info_t error;                    /* likewise */
    _Atomic bool failure_counts;              /* the agent is told that nobody has dealt with it */
    int bell; /* eventfd: readable for good once this process has stopped it; -1: on one host */
    struct dt_tuning tuning; /* the same for all ranks of the host, or of all hosts */
    struct dt_shm shm;
    struct dt_mesh mesh;
    uint32_t
        streams; /* of channels between two ranks; those of the mesh may change (dt_comm_tune) */
    struct dt_leaders leaders; /* on several hosts: where all of them have this local rank */
    struct dt_hierarchical hierarchical;
    struct dt_coll_error coll_error;
    struct dt_gpu *gpu; /* gpu/gpu.h */
    bool on_device;     /* calls that begin now are for data in GPU memory, on all ranks */
    bool watched;       /* dt_comm_watch */
};

/* Every collective is between these two. begin names the call, of which its caller has set all but
 * kind and number; end takes what came of it, and says in dt_last_error what went wrong. */
dt_result_t dt_comm_begin(struct dt_comm *c, struct dt_call *call, enum dt_call_kind kind);
/* What begin does while no ranks are joining, and nothing has failed or been stopped: gives the
 * call its number; tells the agent and the recorder. Only the first has to come before
 * others are shown anything, but both before anybody is waited for. */
void dt_comm_count(struct dt_comm *c, struct dt_call *call);
void dt_comm_note(struct dt_comm *c, const struct dt_call *call);
/* Of a call that has begun: while it lasts dtrun is to take it for one of that kind. */
void dt_comm_pass_for(struct dt_comm *c, const struct dt_call *call, enum dt_call_kind kind);
dt_result_t dt_comm_end(struct dt_comm *c, const struct dt_call *call, dt_result_t r);
/* What this rank does between two calls, which no other has to do and which may take long: the
 * limit of calls holds for it, and while it lasts others are told that this rank is in it. work
 * returns as what is between begin and end does. */
dt_result_t dt_comm_aside(struct dt_comm *c, enum dt_call_kind kind,
                          dt_result_t (*work)(struct dt_comm *c, void *arg), void *arg);
/* While this is on, the rank counts as waiting for its GPU whenever it is in no other call, so that
 * the limit of calls holds: a driver whose queue is full may block any thread that uses it. */
void dt_comm_watch(struct dt_comm *c, bool on);
/* What ends a call for which this rank lacks memory. */
dt_result_t dt_comm_no_memory(struct dt_comm *c);

/* Whether this rank speaks for its host with the others. */
static inline bool dt_comm_leads(const struct dt_comm *c)
{
    return c->local_rank == 0 && c->nodes > 1;
}

/* Of a rank of this host, by its rank. */
static inline uint32_t dt_comm_local_rank(const struct dt_comm *c, uint32_t rank)
{
    return (uint32_t)dt_u32s_find(&c->locals, rank);
}

/* Why calls are to end, and who is to blame for it; 0: they are not. Costs a load. */
int dt_comm_stopped(const struct dt_comm *c, uint32_t *culprit);
/* DT_OK, or what has ended this generation; costs a load. */
dt_result_t dt_comm_check(struct dt_comm *c);

/* Notes a failure that was found outside these functions, so that no rank of this host waits on.
 * Takes the text of dt_last_error. Returns result. */
dt_result_t dt_comm_fail(struct dt_comm *c, dt_result_t result);
/* The program has dealt with the failure of a communicator, if there was one: it has freed or
 * aborted it. For any thread, while c is in its slot. */
void dt_comm_forgive(struct dt_comm *c);

/* For any thread, while c is in its slot: ends c's calls here and on its other ranks; and what a
 * stop that came from elsewhere is to those of its threads that wait for connections. */
void dt_comm_stop(struct dt_comm *c, dt_result_t result, uint32_t culprit, const char *why);
void dt_comm_wake(struct dt_comm *c);

#endif
