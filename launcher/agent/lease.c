#include "launcher/agent/lease.h"

#include "launcher/agent/clock.h"
#include "launcher/base/clock.h"

enum { TICKS = 4, LEASE_MIN_MS = 20 };

static void on_timer(uv_timer_t *timer);

static void fire_in(struct dt_lease *lease, uint64_t ms)
{
    lease->due_ns = dt_now_ns() + ms * 1000000;
    uv_timer_start(&lease->timer, on_timer, ms, 0);
}

static void set_doubt(struct dt_lease *lease, bool on)
{
    if (lease->in_doubt == on)
        return;
    lease->in_doubt = on;
    lease->doubt(lease->arg, on);
}

static void on_timer(uv_timer_t *timer)
{
    struct dt_lease *lease = timer->data;
    uint64_t now = dt_now_ns();
    uint64_t next = lease->ms / TICKS, until_expiry, until_doubt;

    if (dt_clock_stood_still(lease->due_ns, now, lease->ms))
        lease->silent_since_ns = now;
    lease->tick(lease->arg);
    until_expiry = dt_clock_ms_left(lease->silent_since_ns, now, lease->ms);
    until_doubt = dt_clock_ms_left(lease->heard_ns, now, lease->ms);
    if (!lease->held && until_expiry == 0) {
        lease->expired(lease->arg);
        return;
    }
    if (!lease->held && until_doubt == 0)
        set_doubt(lease, true);
    /* The timer fires no later than the end of the lease: dtrun relies on that when it starts ranks
     * elsewhere. */
    if (!lease->held && until_doubt && next > until_doubt)
        next = until_doubt;
    if (!lease->held && next > until_expiry)
        next = until_expiry;
    fire_in(lease, next);
}

void dt_lease_start(struct dt_lease *lease, uv_loop_t *loop, uint32_t ms)
{
    uv_timer_init(loop, &lease->timer);
    lease->timer.data = lease;
    dt_lease_set(lease, ms);
}

void dt_lease_set(struct dt_lease *lease, uint32_t ms)
{
    lease->ms = ms < LEASE_MIN_MS ? LEASE_MIN_MS : ms;
    dt_lease_renew(lease);
    fire_in(lease, 0);
}

void dt_lease_renew(struct dt_lease *lease)
{
    lease->heard_ns = lease->silent_since_ns = dt_now_ns();
    atomic_store(lease->keeper_heard_ns, lease->held ? 0 : lease->heard_ns);
    set_doubt(lease, false);
}

void dt_lease_hold(struct dt_lease *lease, bool on)
{
    lease->held = on;
    dt_lease_renew(lease);
}
