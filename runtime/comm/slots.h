/* The communicators of this process, found by the program's handles.
 *
 * A handle is not an address. It names a slot, and counts the communicators that the slot has had.
 * So any value that a program passes, however old, can be told from a valid handle. Slot 0 is
 * DT_WORLD's. */
#ifndef DT_COMM_SLOTS_H
#define DT_COMM_SLOTS_H

#include <stdbool.h>

#include "runtime/base/ticketlock.h"
#include "runtime/comm/async.h"
#include "runtime/dtrun.h"

enum { DT_SLOTS = 4096 };

struct dt_slot {
    struct dt_ticketlock lock;   /* held while a thread is in a call on the communicator */
    struct dt_comm *comm;        /* NULL: none; changes only under the lock */
    _Atomic(dt_comm_t *) handle; /* of the newest communicator; likewise */
    _Atomic uint32_t limit_ms;   /* of calls that begin from now on (struct dt_comm) */
    _Atomic bool lowered;        /* the agent still applies the lower limit of an earlier call */
    struct dt_async async;
};

/* Waits for the slot that the handle names and takes its lock, unless this thread executes a task
 * in it. Returns NULL at once if the slot never had that communicator, or has had a newer one. The
 * caller checks whether the slot still holds it. *limit_ms: the limit that applied when the call,
 * or its task, arrived. */
struct dt_slot *dt_slot_enter(const dt_comm_t *handle, uint32_t *limit_ms);
void dt_slot_leave(struct dt_slot *s);

/* Whether any thread holds the slot's lock or waits for it. */
bool dt_slot_is_held(const dt_comm_t *handle);

/* Submits a task; the slot's thread executes it in its turn. DT_ERR_ARG: there is no such
 * communicator; dt_last_error is unchanged. */
dt_result_t dt_slot_submit(const dt_comm_t *handle, struct dt_task *task);

/* Wakes the slot's thread for tasks that were submitted ahead (async.h). Call this before waiting
 * for such a task. */
void dt_slot_wake(const dt_comm_t *handle);
/* Polls until the tasks that were submitted ahead (async.h), which must be about to end, are done.
 */
void dt_slot_await_ahead(const dt_comm_t *handle);

/* Puts c into slot 0, whose lock the caller holds. */
void dt_slot_set_world(struct dt_comm *c);
/* Puts c into a free slot, together with its limit; the slot's lock is free afterwards. False:
 * there are DT_SLOTS communicators. */
bool dt_slot_assign(struct dt_comm *c);
/* Refuses new calls and tasks on the slot's communicator. Calls that already wait for the slot's
 * lock continue, and dt_comm_stop still finds the communicator. */
void dt_slot_shut(struct dt_slot *s);
/* Removes the communicator from a slot whose lock the caller holds: no other thread sees it from
 * now on. */
void dt_slot_clear(struct dt_slot *s);

/* Sets the limit of calls that begin from now on. For any thread at any time. False: the handle
 * names no communicator on which a call may begin. *is_least: the limit is below the previous one
 * and below those of all calls under way, so the agent needs a message (dt_agentlink_limit). */
bool dt_slot_set_limit(const dt_comm_t *handle, uint32_t ms, bool *is_least);
/* Called when a task, a send or a receive has ended. If nothing else is under way, the agent may
 * apply the current limit again. */
void dt_slot_settle(const dt_comm_t *handle);

/* Takes the locks of all slots and refuses new calls. False: a thread is in a call, on a
 * communicator or a view; then no lock is held. */
bool dt_slots_enter_all(void);
/* While the caller holds all locks: ends the slots' threads, empties all slots, and passes each
 * communicator to drop. */
void dt_slots_clear_all(void (*drop)(struct dt_comm *c));
void dt_slots_leave_all(void);

/* Whether the handle names a communicator that exists or has existed. */
bool dt_slot_has_issued(const dt_comm_t *handle);
/* Pass the communicator of a handle, or all communicators one by one, to see(), even while threads
 * are in calls on them. None is removed meanwhile. False: the handle names no existing
 * communicator. */
bool dt_slot_visit(const dt_comm_t *handle, void (*see)(struct dt_comm *c, void *arg), void *arg);
void dt_slots_visit(void (*see)(struct dt_comm *c, void *arg), void *arg);

#endif
