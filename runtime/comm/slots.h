/* The communicators of this process, by the handles that the program has of them.
 *
 * A handle is no address but names a slot, and which of the communicators that the slot has had in
 * turn: whatever value a program passes, and however old, is told from one that is valid. Slot 0 is
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
    struct dt_comm *comm;        /* NULL: there is none; changes only under the lock */
    _Atomic(dt_comm_t *) handle; /* of the newest; likewise */
    _Atomic uint32_t limit_ms;   /* of calls that come from now on (struct dt_comm) */
    _Atomic bool lowered;        /* the agent goes by a lesser one, of calls that came before */
    struct dt_async async;
};

/* Waits for the slot that the handle names, and takes its lock, unless this thread makes a task's
 * call in it; NULL, at once, where the slot has never had that communicator, or has had a newer
 * one. Whether the slot still holds it is for the caller to see. *limit_ms: the limit that held
 * when the call came, or its task. */
struct dt_slot *dt_slot_enter(const dt_comm_t *handle, uint32_t *limit_ms);
void dt_slot_leave(struct dt_slot *s);

/* Whether any thread holds the lock of that slot, or waits for it. */
bool dt_slot_is_held(const dt_comm_t *handle);

/* Hands a task in, whose calls on this communicator the slot's own thread makes in their turn.
 * DT_ERR_ARG, without a text: there is none. */
dt_result_t dt_slot_hand_in(const dt_comm_t *handle, struct dt_task *task);

/* Somebody is about to wait for a task that may have been handed in ahead (async.h). */
void dt_slot_say(const dt_comm_t *handle);
/* Waits for the tasks that were handed in ahead (async.h), which are about to be over. */
void dt_slot_await_ahead(const dt_comm_t *handle);

/* Gives c to slot 0, whose lock is held. */
void dt_slot_set_world(struct dt_comm *c);
/* Gives c to a free slot, whose lock is not held, and with it c's limit. False: there are DT_SLOTS
 * communicators. */
bool dt_slot_find(struct dt_comm *c);
/* Nothing is handed in or begun on the communicator of a slot any more, but for what waits for the
 * slot's lock; what stops it still finds it there. */
void dt_slot_shut(struct dt_slot *s);
/* Takes the communicator out of a slot whose lock is held: no other thread sees it from now on. */
void dt_slot_clear(struct dt_slot *s);

/* Gives calls that come from now on this limit, for any thread at any time. False: the handle names
 * no communicator on which any may begin. *least: it is less than the one before, and than those of
 * calls that are not over, so that the agent is to hear of it. */
bool dt_slot_set_limit(const dt_comm_t *handle, uint32_t ms, bool *least);
/* A call that was handed in, or between two ranks, is over: if no other is under way, the agent
 * need go by no limit but that of calls that come. */
void dt_slot_settle(const dt_comm_t *handle);

/* Takes the locks of all slots, if no thread is in a call, on a view neither, and shuts them. */
bool dt_slots_enter_all(void);
/* While the locks of all are held: ends their threads, clears all, and hands each communicator,
 * which has no slot any more, to drop. */
void dt_slots_clear_all(void (*drop)(struct dt_comm *c));
void dt_slots_leave_all(void);

/* Whether the handle names a communicator that there is or has been. */
bool dt_slot_ever(const dt_comm_t *handle);
/* Runs see on the communicator of a handle, or on all there are, whether threads are in calls on
 * them or not; none is cleared meanwhile. False: the handle names none that there is. */
bool dt_slot_see(const dt_comm_t *handle, void (*see)(struct dt_comm *c, void *arg), void *arg);
void dt_slots_see(void (*see)(struct dt_comm *c, void *arg), void *arg);

#endif
