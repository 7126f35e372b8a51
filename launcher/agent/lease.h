/* The launcher's lease. Whatever arrives from the launcher renews it. When the launcher has been
 * silent for the whole lease, it is taken as gone.
 *
 * The silence is not the launcher's when this process stood still itself, perhaps with the whole
 * job: it then counts from the moment we run again. But a launcher that did run has replaced our
 * ranks one lease after its last word. Until it is heard again it is in doubt, and the ranks must
 * not run.
 *
 * CLOCK_BOOTTIME, which counts the time that a machine sleeps. */
#ifndef DT_AGENT_LEASE_H
#define DT_AGENT_LEASE_H

#include <stdbool.h>
#include <uv.h>

/* Until START says otherwise. Long: nothing runs yet, and a dtrun whose heartbeat is slow may still
 * be waiting for other hosts. */
enum { DT_LEASE_DEFAULT_MS = 120 * 1000 };

struct dt_lease {
    uv_timer_t timer;
    uint64_t due_ns;          /* when the timer is to fire */
    uint64_t heard_ns;        /* when the launcher was heard last */
    uint64_t silent_since_ns; /* the same, or later: when we ran again */
    uint32_t ms;
    bool held;
    bool in_doubt;
    void (*tick)(void *arg);           /* four times per lease, while it holds */
    void (*doubt)(void *arg, bool on); /* the launcher may have replaced our ranks; or has not */
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
