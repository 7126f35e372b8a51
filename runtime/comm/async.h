/* The thread in which a slot, or a channel, makes the calls that nobody waits for yet.
 *
 * A task draws its number in the slot's (channel's) lock when it is handed in, so that it has its
 * place among the calls that the program makes itself, before and after it. The thread begins with
 * the first task, with all signals blocked, and ends with dt_finalize. */
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
    /* Makes the call. The thread holds the slot's lock meanwhile. */
    dt_result_t (*run)(struct dt_task *task);
    bool ahead; /* may be handed in only if all tasks before it are done, or are such tasks too */
    struct dt_p2p *channel; /* of a call between two ranks; set when it is handed in, */
    uint32_t limit_ms;      /* as is the time that its calls may wait (struct dt_comm) */

    /* The rest is set here. Once it is done the task belongs to its owner again. */
    struct dt_task *next;
    uint32_t number;
    _Atomic uint32_t done;
    dt_result_t result;
    dt_error_info_t error; /* of a failure */
};

struct dt_async { /* all zero at first */
    pthread_mutex_t mutex;
    pthread_cond_t handed_in;
    pthread_t thread;
    bool started;
    bool ending;
    struct dt_task *first;
    struct dt_task *last;
    struct dt_ticketlock *lock;
    _Atomic bool unsaid;    /* the thread may sleep while there is a task, until dt_async_say */
    _Atomic uint32_t ahead; /* the number after the last task that was handed in ahead */
    uint32_t limit_ms;      /* under the lock: of the task that is made */
};

void dt_async_open(struct dt_async *a, struct dt_ticketlock *lock);
/* DT_ERR_NOMEM, of which nothing has been said: there can be no thread; nothing was handed in.
 * DT_ERR_UNSUPPORTED, likewise: it was to be ahead, and another task or call comes before it. */
dt_result_t dt_async_hand_in(struct dt_async *a, struct dt_task *task);
/* Wakes the thread for tasks that are ahead. They begin late, since waking a thread takes time:
 * when a thread waits for them, or within a millisecond (gpu/gate.h). Otherwise this costs one
 * load. */
void dt_async_say(struct dt_async *a);
/* Starts the thread before there is a task that needs it. DT_ERR_NOMEM, as above. */
dt_result_t dt_async_start(struct dt_async *a);
/* Draws its number only if nobody holds the lock or waits for it. True: the task holds the lock,
 * and somebody has to make it, or pass it on. */
bool dt_async_hold_back(struct dt_async *a, struct dt_task *task);
/* Hands one in that was held back, before any other that has drawn its number since. */
dt_result_t dt_async_pass_on(struct dt_async *a, struct dt_task *task);
/* Makes one that was held back, in this thread. */
void dt_async_make(struct dt_async *a, struct dt_task *task);
/* Waits for the tasks that were handed in ahead, which are about to be over. */
void dt_async_await_ahead(struct dt_async *a);
/* All tasks are done: the caller holds the lock, and drew its number after the last of them. */
void dt_async_close(struct dt_async *a);

bool dt_task_is_done(struct dt_task *task);
/* A thread that waits for any of several tasks is between the first two, and sleeps in the third
 * until more tasks of this process are done than it has seen before it looked at its own. */
void dt_tasks_begin_any(void);
void dt_tasks_end_any(void);
uint32_t dt_tasks_done(void);
void dt_tasks_await_any(uint32_t seen);
/* Sleeps until it is done, or for so long; returns whether it is done. */
bool dt_task_await_for(struct dt_task *task, uint64_t ns);
/* Sleeps until it is done. Returns its result, and makes its text what dt_last_error returns. */
dt_result_t dt_task_await(struct dt_task *task);

/* The lock that this thread holds while it makes a task's call. Every call looks at it: hence the
 * model that takes a load and no function. */
extern _Thread_local const struct dt_ticketlock *dti_held
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Whether this thread is making a task's call, and so holds this lock already. */
static inline bool dt_async_holds(const struct dt_ticketlock *lock)
{
    return dti_held == lock;
}

#endif
