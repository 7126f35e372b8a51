#include "launcher/agent/lease.h"

#include "launcher/agent/clock.h"

enum { TICKS = 4, MS_MIN = 20 };

static void on_timer(uv_timer_t *timer)
{
    struct dt_lease *lease = timer->data;
    uint64_t silent_ms = (dt_clock_ns() - lease->renewed_ns) / 1000000;
    uint64_t next = lease->ms / TICKS;

    if (!lease->held && silent_ms >= lease->ms) {
        lease->expired(lease->arg);
        return;
    }
    lease->tick(lease->arg);
    /* Not later than the lease ends: dtrun counts on that before it starts ranks elsewhere. */
    if (!lease->held && next > lease->ms - silent_ms)
        next = lease->ms - silent_ms;
    uv_timer_start(timer, on_timer, next, 0);
}

void dt_lease_start(struct dt_lease *lease, uv_loop_t *loop, uint32_t ms)
{
    uv_timer_init(loop, &lease->timer);
    lease->timer.data = lease;
    dt_lease_set(lease, ms);
}

void dt_lease_set(struct dt_lease *lease, uint32_t ms)
{
    lease->ms = ms < MS_MIN ? MS_MIN : ms;
    dt_lease_renew(lease);
    uv_timer_start(&lease->timer, on_timer, 0, 0);
}

void dt_lease_renew(struct dt_lease *lease)
{
    lease->renewed_ns = dt_clock_ns();
}

void dt_lease_hold(struct dt_lease *lease, bool on)
{
    lease->held = on;
    dt_lease_renew(lease);
}
