/* A communicator: a group of ranks of the job, the connections between them, and their calls.
 *
 * Every rank makes the same calls in the same order, one at a time. A final failure
 * (dt_result_is_final) ends the communicator: every later call returns the same code. Functions
 * that return dt_result_t set dt_last_error when they fail. Unless a function says otherwise, only
 * the thread that holds the communicator's slot may call it.
 *
 * Ranks are ranks of the communicator, except in struct dt_coll_error and in the words of shared
 * memory that stop it: those name ranks of the job. */
#ifndef DT_COMM_COMM_H
#define DT_COMM_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/coll_error.h"
#include "runtime/base/error.h"
#include "runtime/base/inflight.h"
#include "runtime/base/tuning.h"
#include "runtime/coll/hierarchical.h"
#include "runtime/coll/layout.h"
#include "runtime/coll/leaders.h"
#include "runtime/comm/pairnotes.h"
#include "runtime/dtrun.h"
#include "runtime/shm/shm.h"
#include "runtime/world/world.h"

/* Whether the agent counts the failure of a communicator as one that the program ignores. */
enum dt_comm_counted {
    DT_COMM_UNCOUNTED,
    DT_COMM_COUNTED,
    DT_COMM_HANDLED /* the program has freed or aborted the communicator */
};

struct dt_comm {
    struct dt_world *world;
    struct dt_slot *slot;
    uint64_t id; /* 0: DT_WORLD; else the same on all of its ranks, and unique in the job */
    int rank;
    int size;
    int local_rank; /* among the ranks of this host */
    int local_size;
    bool lent;     /* the agent provided the shared memory and watches its calls */
    uint32_t node; /* this host's index among those that have ranks of this communicator */
    uint32_t nodes;
    uint32_t *ranks;   /* the job's rank of each rank */
    uint32_t *node_of; /* the host of each rank */
    struct dt_host_ranks host_ranks;
    uint32_t *leader_peers; /* by host: its rank with this rank's local rank */
    struct dt_u32s locals;  /* the ranks on this host, by local rank */
    uint32_t *local_ranks;  /* the job's rank of each of them */
    uint64_t calls;
    /* How long the current call may wait; 0: dtrun's limit; DT_HOSTSHM_NO_LIMIT. */
    uint32_t limit_ms;
    struct dt_p2p **channels; /* by peer: the channel to it and from it (p2p.h); NULL before the
                                 first is made */
    struct dt_inflight p2p_inflight; /* sends and receives under way */
    struct dt_pairnotes notes;       /* sends and receives in which threads wait */
    bool shut; /* no call may begin; for threads that keep the communicator in its slot */
    /* Set between dt_join_begin and dt_join: announces the call that this rank is about to make
     * (join.h). NULL: all ranks have data. */
    dt_result_t (*announce)(struct dt_comm *c, const struct dt_call *call);
    bool announcing;             /* the call is an announcement, or has been announced */
    struct dt_call next;         /* what this rank announces: its next call, or dt_join */
    const struct dt_call *whole; /* the program's call, of which this rank makes chunks; or NULL */
    const dt_all_reduce_options_t *announced; /* of the all-reduce that begins; NULL: none */
    dt_result_t failed;                       /* DT_OK, or what every call returns from now on */
    dt_error_info_t error;                    /* of that failure */
    _Atomic int counted;                      /* an enum dt_comm_counted */
    /* An eventfd: readable for good once this process has stopped c. -1: there is one host. */
    int bell;
    /* Thresholds of shared memory are the same on all ranks of the host, those of the network on
     * all hosts. */
    struct dt_tuning tuning;
    struct dt_shm shm;
    struct dt_mesh mesh;
    uint32_t streams; /* of each p2p channel; dt_comm_tune changes only mesh.streams */
    /* With several hosts: the ranks with this local rank on each of them. */
    struct dt_leaders leaders;
    struct dt_hierarchical hierarchical;
    struct dt_coll_error coll_error;
    struct dt_gpu *gpu; /* gpu/gpu.h */
    bool on_device;     /* the calls that begin now have their data in GPU memory, on all ranks */
    bool watched;       /* dt_comm_watch is on */
    uint8_t last;       /* kind of the newest collective */
};

/* Every collective runs between dt_comm_begin and dt_comm_end. The caller of dt_comm_begin has set
 * all of call but kind and number. dt_comm_end takes the collective's result and describes a
 * failure in dt_last_error. */
dt_result_t dt_comm_begin(struct dt_comm *c, struct dt_call *call, enum dt_call_kind kind);
/* The two steps of begin for a communicator that works and has no joining ranks. dt_comm_count
 * numbers the call, before this rank shows the others anything of it. dt_comm_note tells the agent
 * and the recorder, before this rank waits. */
void dt_comm_count(struct dt_comm *c, struct dt_call *call);
void dt_comm_note(struct dt_comm *c, const struct dt_call *call);
/* Shows dtrun a call that has begun under another kind, until the call ends. */
void dt_comm_pass_for(struct dt_comm *c, const struct dt_call *call, enum dt_call_kind kind);
dt_result_t dt_comm_end(struct dt_comm *c, const struct dt_call *call, dt_result_t r);
/* Runs work between two calls, on this rank alone. The limit of calls applies to it, and other
 * ranks are told that this rank is in it. work returns a result like a collective between begin and
 * end. */
dt_result_t dt_comm_aside(struct dt_comm *c, enum dt_call_kind kind,
                          dt_result_t (*work)(struct dt_comm *c, void *arg), void *arg);
/* While this is on, a rank that is in no other call counts as waiting for its GPU, and the limit of
 * calls applies. A driver whose queue is full may block any thread that uses it. */
void dt_comm_watch(struct dt_comm *c, bool on);
/* Ends a call for which this rank lacks memory. */
dt_result_t dt_comm_no_memory(struct dt_comm *c);

/* Whether this rank talks to other hosts for all ranks of its host. */
static inline bool dt_comm_leads(const struct dt_comm *c)
{
    return c->local_rank == 0 && c->nodes > 1;
}

/* The local rank of a rank on this host. */
static inline uint32_t dt_comm_local_rank(const struct dt_comm *c, uint32_t rank)
{
    return (uint32_t)dt_u32s_find(&c->locals, rank);
}

/* Whether anything has stopped c, so that its calls must end. Costs one load. */
bool dt_comm_stopped(const struct dt_comm *c);
/* Returns DT_OK, or stores in t what has stopped c and returns its code. Costs one load. */
dt_result_t dt_comm_check_stop(const struct dt_comm *c, struct dt_coll_error *t);
/* Returns DT_OK, or what has ended this generation. Costs one load. */
dt_result_t dt_comm_check(struct dt_comm *c);

/* Ends c with a failure, if it is final and the first one, so that no rank of this host keeps
 * waiting. Takes the text of dt_last_error. Returns result. */
dt_result_t dt_comm_fail(struct dt_comm *c, dt_result_t result);
/* The same for c->coll_error, outside of a call: describes it first. Returns its code. */
dt_result_t dt_comm_fail_outside(struct dt_comm *c);
/* The same because this rank has no memory left. */
dt_result_t dt_comm_fail_no_memory(struct dt_comm *c);
/* The program has handled a failure of c, if there was one: it has freed or aborted c. For any
 * thread, while c is in its slot. */
void dt_comm_mark_handled(struct dt_comm *c);

/* For any thread, while c is in its slot. dt_comm_stop ends the calls on c on all of its ranks.
 * dt_comm_wake wakes this process's threads that wait for connections, after a stop that came from
 * elsewhere. */
void dt_comm_stop(struct dt_comm *c, dt_result_t result, uint32_t culprit, const char *why);
void dt_comm_wake(struct dt_comm *c);

#endif
