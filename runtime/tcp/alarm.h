/* What ends every wait for a descriptor, whatever it waits for: the word in shared memory that
 * stops a communicator, and whatever brings the news that it has been set. */
#ifndef DT_TCP_ALARM_H
#define DT_TCP_ALARM_H

#include <poll.h>

#include "runtime/base/coll_error.h"
#include "runtime/wire/hostshm.h"
#include "runtime/world/agentlink.h"

struct dt_alarm {
    struct dt_agentlink *agent;
    const struct dt_hostshm *shm;
    int bell; /* eventfd: readable for good once a thread of this process has set the stop word */
    struct dt_coll_error *coll_error;
};

enum {
    DT_ALARM_FDS = 2,
    DT_ALARM_TOLD_MS = 1000, /* within which every rank hears what one has told its agent */
};

/* DT_OK, or what has stopped the communicator, which is noted as the coll_error. */
dt_result_t dt_alarm_check(const struct dt_alarm *a);

/* poll(2) on n descriptors, of which the caller leaves the first DT_ALARM_FDS to this function.
 * Heeds the agent, then returns as dt_alarm_check does. The revents of the others are valid, and 0
 * where poll was interrupted. */
dt_result_t dt_alarm_poll(const struct dt_alarm *a, struct pollfd *p, nfds_t n, int timeout_ms);

/* Waits for what stops the communicator, for so long at most; returns as dt_alarm_check does. */
dt_result_t dt_alarm_await(const struct dt_alarm *a, int ms);

#endif
