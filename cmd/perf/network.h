/* What a host's network carries, as streams between hosts find it. */
#ifndef DT_CMD_PERF_NETWORK_H
#define DT_CMD_PERF_NETWORK_H

#include "runtime/dtrun.h"

/* Collective, for the ranks of several hosts. The Gbit/s of payload that each host sends to the
 * next one while it receives as much from the one before: by one rank of each host or by as many as
 * every host has, whichever carries more. */
dt_result_t dt_perf_network_gbits(double *gbits);

#endif
