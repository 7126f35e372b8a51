/* What the public calls share: the state of this process, and the communicators it has. */
#ifndef DT_API_CONTEXT_H
#define DT_API_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/comm/async.h"
#include "runtime/comm/comm.h"
#include "runtime/dtrun.h"
#include "runtime/p2p/p2p.h"

/* The state of this process, which only init.c changes. */
enum dt_context_state { DT_CONTEXT_BEFORE, DT_CONTEXT_READY, DT_CONTEXT_AFTER };

struct dt_context {
    _Atomic int state;      /* enum dt_context_state; changes while all slots are held */
    _Atomic bool forked;    /* this process is a child of the one that called dt_init */
    _Atomic uint32_t aside; /* threads that use the job and hold no slot */
    struct dt_world job;    /* its numbers stay readable after dt_finalize */
    struct dt_comm world;
};
extern struct dt_context dti_context;

/* DT_ERR_STATE: before dt_init, or after dt_finalize. name: of the call. */
dt_result_t dt_context_check_state(const char *name);
/* For a thread that uses the job (the agent's socket, DT_WORLD) and holds no slot. Returns whether
 * the job exists; if so, it stays until dt_context_step_back. The caller steps back in either case.
 */
bool dt_context_step_aside(void);
void dt_context_step_back(void);
/* Waits until no thread is aside any more. dt_finalize calls it before it ends the job. */
void dt_context_await_aside(void);

/* Every public call on a communicator begins with dt_context_enter, which waits for the calls on it
 * that other threads have begun, and gives it; and, where that returned DT_OK, ends with
 * dt_context_leave. DT_ERR_STATE: before dt_init, after dt_finalize, in a forked child, or comm has
 * been freed. DT_ERR_ARG: comm is none. name: of the call. */
dt_result_t dt_context_enter(const char *name, const dt_comm_t *comm, struct dt_comm **c);
void dt_context_leave(struct dt_comm *c);
/* Hands a task in, whose public calls on comm the communicator's own thread makes. */
dt_result_t dt_context_hand_in(const char *name, const dt_comm_t *comm, struct dt_task *task);

/* The same for calls between two ranks, each on its way, to the peer or from it. peer is a rank of
 * comm, and not this one. */
struct dt_end {
    int peer;
    bool giving;
};
dt_result_t dt_context_enter_way(const char *name, const dt_comm_t *comm, struct dt_end end,
                                 struct dt_p2p **way);
void dt_context_leave_way(struct dt_p2p *way);
struct dt_parcel { /* what is to go there, or where it is to come */
    void *buf;     /* NULL: the task itself moves the data to and from host memory */
    size_t count;
    dt_dtype_t dtype;
};
/* The task calls dt_p2p_pass with its parcel, and dt_p2p_passed. */
dt_result_t dt_context_hand_in_way(const char *name, const dt_comm_t *comm, struct dt_end end,
                                   const struct dt_parcel *parcel, struct dt_task *task);
/* DT_ERR_NOMEM of dt_async_hand_in and its like: says which call needed the thread. */
dt_result_t dt_context_fail_thread(const char *name);
/* For how long calls on comm may wait that are made or handed in from now on, which waits for
 * nobody: as limit_ms of struct dt_comm. */
dt_result_t dt_context_set_limit(const char *name, const dt_comm_t *comm, uint32_t ms);
/* Reads what the agent has said and no call has read yet. */
void dt_context_heed(void);
/* For what needs no communicator. DT_ERR_STATE: in a forked child. */
dt_result_t dt_context_check_process(const char *name);

/* Who this process is; it stays readable after dt_finalize. DT_ERR_STATE: before dt_init, or in a
 * forked child. */
dt_result_t dt_context_world(const char *name, const struct dt_world **w);

/* For what any thread may ask at any time: runs see, which must not wait, whether threads are in
 * calls on the communicator or not. */
dt_result_t dt_context_see(const char *name, const dt_comm_t *comm,
                           void (*see)(struct dt_comm *c, void *arg), void *arg);

/* DT_OK, or what has stopped comm, which dt_last_error then tells. For any thread at any time. */
dt_result_t dt_context_status(const char *name, const dt_comm_t *comm);

#endif
