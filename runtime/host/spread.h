/* Ranks that share CPUs: which of them share one at the moment, and how many each CPU has.
 *
 * Every rank shows in the communicator's memory on which CPU it last waited. So one that waits
 * knows whether to give up the CPU could help: somebody it waits for is on the same one. And where
 * a CPU has two ranks more than another, the last of them moves there. The kernel would do so, too,
 * but looks at busy CPUs only every some tens of milliseconds, and all wait for the ranks on the
 * fullest one meanwhile.
 *
 * For the thread that holds the communicator's slot. */
#ifndef DT_HOST_SPREAD_H
#define DT_HOST_SPREAD_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/wire/hostshm.h"

struct dt_spread {
    bool used;               /* every CPU has two ranks or more, however they are spread */
    uint32_t cpu;            /* 1 + the one that is shown, or 0 */
    uint32_t left;           /* waits until it looks at what others show */
    uint32_t step;           /* so many between two of these looks: more with each move */
    uint64_t stays_until_ns; /* until then it does not move again */
};

void dt_spread_start(struct dt_spread *p, bool used);

/* At the beginning of a wait. Shows where this rank is, and sometimes moves it: the calling thread,
 * which may then run on what it could before. */
void dt_spread_turn(struct dt_spread *p, const struct dt_hostshm *map, uint32_t me, uint32_t n);

/* Whether peer is on this rank's CPU, as far as both have shown. */
static inline bool dt_spread_is_here(const struct dt_spread *p, const struct dt_hostshm *map,
                                     uint32_t peer)
{
    return atomic_load_explicit(&map->ranks[peer].cpu, memory_order_relaxed) == p->cpu;
}

/* Where the last rank of n on its CPU is to go, which others are then no worse off for: cpus has 1
 * + the CPU of each. The CPU, or -1: it stays, or is not the last, or not all have shown theirs. */
int dt_spread_goal(const uint32_t *cpus, uint32_t n, uint32_t me, const cpu_set_t *allowed);

#endif
