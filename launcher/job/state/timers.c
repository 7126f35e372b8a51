#include "launcher/job/state/timers.h"

void dt_timers_init(struct dt_timers *t, const struct dt_job_ops *ops)
{
    *t = (struct dt_timers){ .ops = ops };
}

uint64_t dt_timers_now_ns(const struct dt_timers *t)
{
    return t->ops->now_ns(t->ops->arg);
}

/* Never returns 0, even if a simulator's clock begins at 0. */
static uint64_t due(const struct dt_timers *t, uint64_t ms)
{
    return dt_timers_now_ns(t) + ms * 1000000 + 1;
}

void dt_timers_set(struct dt_timers *t, enum dt_job_timer timer, uint64_t ms)
{
    t->due_ns[timer] = due(t, ms);
    t->ops->set_timer(t->ops->arg, timer, ms);
}

void dt_timers_shorten(struct dt_timers *t, enum dt_job_timer timer, uint64_t ms)
{
    if (t->due_ns[timer] > due(t, ms))
        dt_timers_set(t, timer, ms);
}

void dt_timers_delay(struct dt_timers *t, enum dt_job_timer timer, uint64_t ns)
{
    uint64_t due_ns = t->due_ns[timer] - 1 + ns, now_ns = dt_timers_now_ns(t);

    if (t->due_ns[timer])
        dt_timers_set(t, timer, due_ns > now_ns ? (due_ns - now_ns + 999999) / 1000000 : 0);
}

void dt_timers_stop(struct dt_timers *t, enum dt_job_timer timer)
{
    t->due_ns[timer] = 0;
    t->ops->stop_timer(t->ops->arg, timer);
}

bool dt_timers_is_running(const struct dt_timers *t, enum dt_job_timer timer)
{
    return t->due_ns[timer] != 0;
}

void dt_timers_expired(struct dt_timers *t, enum dt_job_timer timer)
{
    t->due_ns[timer] = 0;
}
