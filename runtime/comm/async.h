/* A thread that executes nonblocking calls: one for each slot (communicator) and each channel.
 *
 * A task draws a number of the slot's or channel's lock when it is submitted. So it keeps its place
 * among the calls that the program makes itself. The thread starts with the first task, blocks all
 * signals, and ends in dt_finalize. */
#ifndef DT_COMM_ASYNC_H
#define DT_COMM_ASYNC_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/base/ticketlock.h"
#include "runtime/dtrun.h"

struct dt_task {
    /* Executes the call. The thread holds the slot's lock meanwhile. */
    dt_result_t (*run)(struct dt_task *task);
    bool ahead; /* may be submitted only if every earlier task is done, or is such a task too */
    /* set when the task is submitted */
    struct dt_p2p *channel; /* of a send or receive */
    uint32_t limit_ms;      /* how long its calls may wait (struct dt_comm) */

    /* dt_async_submit sets the rest. Once the task is done it belongs to its owner again. */
    struct dt_task *next;
    uint32_t number;
    _Atomic uint32_t done;
    dt_result_t result;
    dt_error_info_t error; /* if result is a failure */
};

struct dt_async { /* zero-initialised */
    pthread_mutex_t mutex;
    pthread_cond_t submitted;
    pthread_t thread;
    _Atomic pthread_t self; /* set by the thread while it runs; else 0, which no thread is */
    bool started;
    bool ending;
    struct dt_task *first;
    struct dt_task *last;
    struct dt_ticketlock *lock;
    _Atomic bool unwoken;   /* the thread may sleep although there is a task, until dt_async_wake */
    _Atomic uint32_t ahead; /* the number after the newest task that was submitted ahead */
    /* Tasks that were submitted ahead and have not left the lock. Without any, "ahead" means
     * nothing: numbers are used again after 2^32 calls. */
    _Atomic uint32_t n_ahead;
    uint32_t limit_ms; /* of the current task; protected by the lock */
};

void dt_async_open(struct dt_async *a, struct dt_ticketlock *lock);
/* DT_ERR_NOMEM: no thread can be started; dt_last_error says why. DT_ERR_UNSUPPORTED: the task is
 * to be ahead, but another task or call comes before it; dt_last_error is unchanged. In both cases
 * nothing was submitted. */
dt_result_t dt_async_submit(struct dt_async *a, struct dt_task *task);
/* Whether a task that is to be ahead could be submitted now. */
bool dt_async_may_go_ahead(struct dt_async *a);
/* Wakes the thread for tasks that are ahead. Waking a thread takes time, so it is not done when
 * such a task is submitted, but when some thread waits for the task, or within a millisecond
 * (gpu/device/gate.h). If there is no such task, this costs one load. */
void dt_async_wake(struct dt_async *a);
/* Starts the thread before a task needs it. DT_ERR_NOMEM: as above. */
dt_result_t dt_async_start(struct dt_async *a);
/* Draws the task's number only if no thread holds the lock or waits for it. If it returns true, the
 * task holds the lock, and the caller must execute the task or pass it on. */
bool dt_async_hold_back(struct dt_async *a, struct dt_task *task);
/* Submits a task that was held back. It still comes before every task that drew its number
 * later. */
dt_result_t dt_async_pass_on(struct dt_async *a, struct dt_task *task);
/* Executes a task that was held back, in this thread. */
void dt_async_make(struct dt_async *a, struct dt_task *task);
/* Waits for the tasks that were submitted ahead. They are about to end. */
void dt_async_await_ahead(struct dt_async *a);
/* A task says that it is about to end, before others can see its results. */
void dt_async_end_soon(void);
/* Waits for all tasks of this process that are about to end. */
void dt_async_await_ends(void);
/* Ends the thread. All tasks must be done: the caller holds the lock, with a number drawn after the
 * last task. */
void dt_async_close(struct dt_async *a);

bool dt_task_is_done(struct dt_task *task);
/* To wait for any of several tasks, a thread calls dt_tasks_begin_any, and dt_tasks_end_any when it
 * has finished. In between it reads dt_tasks_done, then looks at its own tasks. If none is done,
 * dt_tasks_await_any sleeps until more tasks of this process are done than it has read. */
void dt_tasks_begin_any(void);
void dt_tasks_end_any(void);
uint32_t dt_tasks_done(void);
void dt_tasks_await_any(uint32_t seen);
/* Sleeps until the task is done, for at most ns. Returns whether it is done. */
bool dt_task_await_for(struct dt_task *task, uint64_t ns);
/* Sleeps until the task is done. Returns its result, and restores its error for dt_last_error. */
dt_result_t dt_task_await(struct dt_task *task);

/* Whether the calling thread is the one that executes the tasks, and so holds the lock already.
 * Every call asks. A thread-local variable would need memory that the linker has little of for
 * libraries that dlopen loads (static TLS), or a slower call. */
static inline bool dt_async_is_me(struct dt_async *a)
{
    return atomic_load_explicit(&a->self, memory_order_relaxed) == pthread_self();
}

#endif
