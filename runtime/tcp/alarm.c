#include "runtime/tcp/alarm.h"

#include "runtime/base/clock.h"

dt_result_t dt_alarm_check(const struct dt_alarm *a)
{
    uint32_t culprit;
    int stopped = dt_hostshm_stopped(a->shm, &culprit);

    return stopped ? dt_coll_error(a->coll_error, (dt_result_t)stopped, culprit) : DT_OK;
}

dt_result_t dt_alarm_poll(const struct dt_alarm *a, struct pollfd *p, nfds_t n, int timeout_ms)
{
    p[0] = (struct pollfd){ a->agent->fd, POLLIN, 0 };
    p[1] = (struct pollfd){ a->bell, POLLIN, 0 };
    if (poll(p, n, timeout_ms) < 0) {
        for (nfds_t i = 0; i < n; i++)
            p[i].revents = 0;
    }
    if (p[0].revents)
        dt_agentlink_poll(a->agent);
    return dt_alarm_check(a);
}

dt_result_t dt_alarm_await(const struct dt_alarm *a, int ms)
{
    int64_t deadline = dt_clock_ms() + ms, left = ms;
    struct pollfd p[DT_ALARM_FDS];
    dt_result_t result = DT_OK;

    while (result == DT_OK && left > 0) {
        result = dt_alarm_poll(a, p, DT_ALARM_FDS, (int)left);
        left = deadline - dt_clock_ms();
    }
    return result;
}
