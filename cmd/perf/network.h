/* Measures what a host's network carries, with streams between hosts. */
#ifndef DT_CMD_PERF_NETWORK_H
#define DT_CMD_PERF_NETWORK_H

#include "runtime/dtrun.h"

/* Collective, in a job of several hosts. Stores the Gbit/s of payload that each host sends to the
 * next one while it receives as much from the previous one: with one rank of each host, or with as
 * many as every host has, whichever is faster. */
dt_result_t dt_perf_network_gbits(double *gbits);

#endif
