/* The launcher's lease: whatever arrives from it renews the lease; when it has been silent for the
 * whole of it, it is taken as gone. CLOCK_BOOTTIME, so that a machine that slept does not go on
 * with ranks which the launcher has long replaced. */
#ifndef DT_AGENT_LEASE_H
#define DT_AGENT_LEASE_H

#include <stdbool.h>
#include <uv.h>

/* Until START says otherwise. Long: nothing runs yet, and a dtrun whose heartbeat is slow may still
 * be waiting for other hosts. */
enum { DT_LEASE_DEFAULT_MS = 120 * 1000 };

struct dt_lease {
    uv_timer_t timer;
    uint64_t renewed_ns;
    uint32_t ms;
    bool held;
    void (*tick)(void *arg); /* four times per lease, while it holds */
    void (*expired)(void *arg);
    void *arg;
};

/* The callbacks and arg are filled in by the caller. */
void dt_lease_start(struct dt_lease *lease, uv_loop_t *loop, uint32_t ms);
void dt_lease_set(struct dt_lease *lease, uint32_t ms);
void dt_lease_renew(struct dt_lease *lease);
/* While it is held, silence is expected: the user has stopped dtrun (SIGTSTP). */
void dt_lease_hold(struct dt_lease *lease, bool on);

#endif
