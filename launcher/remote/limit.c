#include "launcher/remote/limit.h"

#include "launcher/base/clock.h"

enum { LATE_MS = 500 }; /* a loop that only has much to do is not so late */

static void on_limit_over(uv_timer_t *timer)
{
    struct dt_limit *l = (struct dt_limit *)timer; /* its first member */

    if (dt_now_ns() >= l->due_ns + LATE_MS * UINT64_C(1000000))
        dt_limit_start(l, l->over, l->ms);
    else
        l->over(timer);
}

void dt_limit_start(struct dt_limit *l, uv_timer_cb over, uint64_t ms)
{
    l->over = over;
    l->ms = ms;
    l->due_ns = dt_now_ns() + ms * UINT64_C(1000000);
    uv_update_time(l->timer.loop);
    uv_timer_start(&l->timer, on_limit_over, ms, 0);
}
