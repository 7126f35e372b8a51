/* Which of several deaths is the one that the others follow from. Pure. */
#ifndef DT_WATCH_CAUSE_H
#define DT_WATCH_CAUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dt_death {
    bool hung;      /* it lives, but has not come to a call that others wait in */
    bool host;      /* a whole host was lost; rank is then its first one */
    bool auxiliary; /* no rank: "rank" is its number as of role.h */
    uint32_t rank;
    int32_t code;     /* exit code, or -1 */
    int32_t signo;    /* or 0 */
    uint32_t flags;   /* enum dt_exit_flags */
    int64_t step;     /* last step, or -1 */
    uint64_t time_ns; /* in dtrun's clock: the agent's, corrected for the offset between them */
};

/* One more has died: deaths[last]. cause: the index of the cause of those before it, or -1 when
 * none of them is a failure. Returns the same for all of them.
 *
 * Signals, lost hosts and ranks that hang come before exits; ranks whose runtime had seen a lost
 * peer are consequences and come last; among equals the earliest, then the lowest rank. A rank that
 * exited 0 without dt_finalize, or without dt_init, has failed only when linked peers wait for it
 * (peers_wait); an auxiliary that exited 0 has not. */
int dt_cause_next(const struct dt_death *deaths, int cause, int last, bool peers_wait);

#endif
