/* The state of this process that all public calls share. */
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
    _Atomic int state; /* enum dt_context_state; changes only while dt_init or dt_finalize holds the
                          slots */
    _Atomic bool forked;          /* this process is a child of the one that called dt_init */
    _Atomic uint32_t job_holders; /* threads that use the job and hold no slot */
    struct dt_world job;          /* rank, size and the like stay readable after dt_finalize */
    struct dt_comm world;
};
extern struct dt_context dti_context;

/* Returns DT_OK between dt_init and dt_finalize, else DT_ERR_STATE. name is the public call's. */
dt_result_t dt_context_check_state(const char *name);
/* For a thread that uses the job (the agent's socket, DT_WORLD) and holds no slot. Returns whether
 * the job exists. If so, it stays until dt_context_release_job, which the caller calls in either
 * case. */
bool dt_context_hold_job(void);
void dt_context_release_job(void);
/* Waits until no thread holds the job any more. dt_finalize calls it before it ends the job. */
void dt_context_await_holders(void);

/* Every public call on a communicator begins with dt_context_enter. It waits for earlier calls on
 * the communicator and stores the communicator in *c. If it returns DT_OK, the call ends with
 * dt_context_leave. DT_ERR_STATE: before dt_init, after dt_finalize, in a forked child, or comm has
 * been freed. DT_ERR_ARG: comm is not a communicator. name is the public call's. */
dt_result_t dt_context_enter(const char *name, const dt_comm_t *comm, struct dt_comm **c);
void dt_context_leave(struct dt_comm *c);
/* Submits a task; the communicator's thread executes its calls. */
dt_result_t dt_context_submit(const char *name, const dt_comm_t *comm, struct dt_task *task);

/* The same for a send or a receive, which uses the channel to or from one peer. peer is another
 * rank of comm. */
struct dt_p2p_end {
    int peer;
    bool sending;
};
dt_result_t dt_context_enter_channel(const char *name, const dt_comm_t *comm, struct dt_p2p_end end,
                                     struct dt_p2p **channel);
void dt_context_leave_channel(struct dt_p2p *channel);
struct dt_p2p_data { /* the data of a send or receive */
    void *buf;       /* NULL: the task itself copies the data to or from host memory */
    size_t count;
    dt_dtype_t dtype;
};
/* The task calls dt_p2p_transfer with its data, then ends p2p_inflight. */
dt_result_t dt_context_submit_p2p(const char *name, const dt_comm_t *comm, struct dt_p2p_end end,
                                  const struct dt_p2p_data *data, struct dt_task *task);
/* After dt_async_start or dt_async_submit failed with DT_ERR_NOMEM: adds rank and public call to
 * dt_last_error. Returns DT_ERR_NOMEM. */
dt_result_t dt_context_fail_thread(const char *name);
/* Sets limit_ms of struct dt_comm for calls that are made or submitted from now on. Does not wait
 * for calls under way. */
dt_result_t dt_context_set_limit(const char *name, const dt_comm_t *comm, uint32_t ms);
/* Handles messages from the agent that no call has read yet. */
void dt_context_poll_agent(void);
/* For calls that need no communicator. DT_ERR_STATE: in a forked child. */
dt_result_t dt_context_check_process(const char *name);

/* Stores this process's world, which stays readable after dt_finalize. DT_ERR_STATE: before
 * dt_init, or in a forked child. */
dt_result_t dt_context_world(const char *name, const struct dt_world **w);

/* Runs see on the communicator even if other threads are in calls on it. see must not wait. Any
 * thread may call it at any time. */
dt_result_t dt_context_visit(const char *name, const dt_comm_t *comm,
                             void (*see)(struct dt_comm *c, void *arg), void *arg);

/* After a call on comm was refused. If CUDA has failed on this rank, ends comm on all ranks: others
 * may have made the call. Returns r. */
dt_result_t dt_context_pass_on(const dt_comm_t *comm, dt_result_t r);
/* The same for a call of this kind, and completes dt_last_error_info. In a forked child, only
 * that. */
dt_result_t dt_context_refuse(const dt_comm_t *comm, enum dt_call_kind kind, dt_result_t r);

/* Returns DT_OK, or the failure that ended comm, which dt_last_error then describes. Any thread may
 * call it at any time. */
dt_result_t dt_context_status(const char *name, const dt_comm_t *comm);

#endif
