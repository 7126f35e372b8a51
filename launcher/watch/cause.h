/* Decides which of several deaths caused the others. Pure. */
#ifndef DT_WATCH_CAUSE_H
#define DT_WATCH_CAUSE_H

#include <stdbool.h>
#include <stdint.h>

struct dt_death {
    bool hung;      /* it is alive, but has not reached a call in which other ranks wait */
    bool host;      /* a whole host was lost; rank is its first rank */
    bool auxiliary; /* not a rank: "rank" is its number (role.h) */
    uint32_t rank;
    int32_t code;     /* exit code, or -1 */
    int32_t signo;    /* or 0 */
    uint32_t flags;   /* enum dt_exit_flags */
    int64_t step;     /* last step, or -1 */
    uint64_t time_ns; /* in dtrun's clock: the agent's time, corrected for the offset */
    /* NULL, or the MPI call in which others wait for it, and before which it exited with 0 */
    const char *missed;
    bool says_peer_lost; /* its last lines say that it lost another, or waited too long for it */
};

static inline struct dt_death dt_death_of_host(uint32_t first_rank, uint64_t time_ns)
{
    return (struct dt_death){
        .host = true, .rank = first_rank, .code = -1, .step = -1, .time_ns = time_ns
    };
}

/* deaths[last] has just been added. cause is the index of the cause among the earlier deaths, or -1
 * if none of them is a failure. Returns the index of the cause among all deaths, or -1.
 *
 * Deaths by signal, lost hosts and hanging ranks come before exits. Ranks whose runtime had seen a
 * lost peer, and those that say so, are consequences and come last. Among equals the earliest death
 * wins, then the lowest rank. A rank that exited with 0 but without dt_finalize or dt_init has
 * failed only if linked peers wait for it (peers_wait), or if it was missed. An auxiliary that
 * exited with 0 has not failed. */
int dt_cause_next(const struct dt_death *deaths, int cause, int last, bool peers_wait);

/* Returns whether this line of a rank's output is one in which Gloo, NCCL or PyTorch reports that
 * another process has closed its connection, as when it has failed or left. */
bool dt_cause_line_says_peer_lost(const char *line);

/* The same for a line in which Gloo or PyTorch reports that the rank has waited too long for
 * another, as when that one hangs. */
bool dt_cause_line_says_timed_out(const char *line);

#endif
