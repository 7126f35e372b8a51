/* The thread that saves in the background, and the communicator on which it agrees with the threads
 * of the other ranks.
 *
 * Each part of a save ends with a small collective. All ranks must make the calls on a communicator
 * in the same order, but when a background save makes its next collective differs between ranks. So
 * these collectives cannot take place on DT_WORLD, among the program's own calls. They have a
 * communicator of their own, made in the first such save. It is like one that the program makes: a
 * lost peer or an abort of DT_WORLD ends its calls, dtrun sees which rank waits for which, and it
 * has a thread for nonblocking calls. If the ranks agreed through dtrun instead, all of that would
 * need messages and a limit of its own. */
#ifndef DT_CHECKPOINT_BACKGROUND_H
#define DT_CHECKPOINT_BACKGROUND_H

#include "runtime/checkpoint/format.h"
#include "runtime/checkpoint/group.h"
#include "runtime/comm/comm.h"

/* Collective on world, whose ranks form the group, until it has succeeded once. Makes the
 * communicator. */
dt_result_t dt_background_open(struct dt_comm *world, const struct dt_group *g);
/* Does all that may fail on one rank alone: starts the thread, sets the limit of its calls to that
 * of world's, reserves the request, and copies the buffers. If that fails on any rank, the caller
 * releases the request. */
dt_result_t dt_background_prepare(const struct dt_comm *world, const struct dt_buffers *buffers,
                                  dt_request_t *request);
/* Lets the thread make the save from the copies. All ranks have prepared it. A failure that ends
 * the communicator also ends world, as in a save that the program waits for. */
typedef dt_result_t (*dt_background_save_f)(struct dt_comm *c, const struct dt_buffers *copies);
dt_result_t dt_background_start(struct dt_comm *world, dt_background_save_f save,
                                dt_request_t *request);
/* Waits until no save is under way in the background. The caller makes the next checkpoint call, or
 * ends the job. */
void dt_background_await(void);
/* Frees the copies. No save is under way. */
void dt_background_end(void);

#endif
