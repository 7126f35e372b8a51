/* Limits how long a host may take. If dtrun itself stood still when the time was over, because it
 * was stopped or its machine slept, the host gets the same time again: dtrun has not read yet what
 * the host sent meanwhile. */
#ifndef DT_REMOTE_LIMIT_H
#define DT_REMOTE_LIMIT_H

#include <stdint.h>
#include <uv.h>

struct dt_limit {
    uv_timer_t timer; /* its owner initialises, stops and closes it, and may use its data */
    uv_timer_cb over;
    uint64_t ms;
    uint64_t due_ns;
};

/* Starts or restarts the timer. over: the time is over. */
void dt_limit_start(struct dt_limit *l, uv_timer_cb over, uint64_t ms);

#endif
