/* The launcher's lease. Every message from the launcher renews it. If the launcher has been silent
 * for the whole lease, it counts as gone.
 *
 * If this process itself did not run for a while, perhaps with the whole job, the silence counts
 * only from the moment when it runs again. But if the launcher did run in that time, it replaces
 * these ranks one lease after its last message. So until the launcher is heard again, the lease is
 * in doubt, and the ranks must not run.
 *
 * The clock is CLOCK_BOOTTIME, which counts the time that a machine sleeps. */
#ifndef DT_AGENT_LEASE_H
#define DT_AGENT_LEASE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

/* Until START sets another one. Long, because nothing runs yet, and a dtrun with a slow heartbeat
 * may still be waiting for other hosts. */
enum { DT_LEASE_DEFAULT_MS = 120 * 1000 };

struct dt_lease {
    uv_timer_t timer;
    uint64_t due_ns;          /* when the timer is due */
    uint64_t heard_ns;        /* when the launcher was last heard */
    uint64_t silent_since_ns; /* heard_ns, or the later time at which this process ran again */
    uint32_t ms;
    _Atomic uint64_t *keeper_heard_ns; /* for the keeper: heard_ns; 0 while the lease is held */
    bool held;                         /* silence is expected */
    bool in_doubt;                     /* doubt() was last called with on set */
    void (*tick)(void *arg);           /* four times per lease, and when it ends */
    /* on: the launcher may have replaced the ranks of this host; off: it has not. */
    void (*doubt)(void *arg, bool on);
    void (*expired)(void *arg);
    void *arg;
};

/* The caller first fills in keeper_heard_ns, the callbacks and arg. */
void dt_lease_start(struct dt_lease *lease, uv_loop_t *loop, uint32_t ms);
void dt_lease_set(struct dt_lease *lease, uint32_t ms);
void dt_lease_renew(struct dt_lease *lease);
/* Silence is expected while the lease is held: the user has stopped dtrun (SIGTSTP). */
void dt_lease_hold(struct dt_lease *lease, bool on);

#endif
