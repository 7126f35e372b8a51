/* Ends waits for descriptors when the communicator is stopped. It combines the abort word in shared
 * memory with the descriptors that announce a change of it. */
#ifndef DT_TCP_ALARM_H
#define DT_TCP_ALARM_H

#include <poll.h>

#include "runtime/base/coll_error.h"
#include "runtime/wire/hostshm.h"
#include "runtime/world/agentlink.h"

struct dt_alarm {
    struct dt_agentlink *agent;
    const struct dt_hostshm *shm;
    int bell; /* eventfd: readable for good once a thread of this process has set the abort word */
    struct dt_coll_error *coll_error;
};

enum {
    DT_ALARM_FDS = 2,
    /* Within this time every rank learns what one rank has told its agent. */
    DT_ALARM_TOLD_MS = 1000,
};

/* Returns DT_OK, or what has stopped the communicator, and stores the latter as the coll_error. */
dt_result_t dt_alarm_check(const struct dt_alarm *a);

/* poll(2) on n descriptors, of which the caller leaves the first DT_ALARM_FDS to this function.
 * Reads the agent's messages, then returns like dt_alarm_check. The revents of the other
 * descriptors are valid; they are 0 if poll was interrupted. */
dt_result_t dt_alarm_poll(const struct dt_alarm *a, struct pollfd *p, nfds_t n, int timeout_ms);

/* Waits until the communicator is stopped, or the time is over. Returns like dt_alarm_check. */
dt_result_t dt_alarm_await(const struct dt_alarm *a, int ms);

#endif
