/* Monotonic time, for deadlines. */
#ifndef DT_BASE_CLOCK_H
#define DT_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC_COARSE advances only every few milliseconds, and costs a quarter of
 * CLOCK_MONOTONIC. */
static inline uint64_t dt_clock_read(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static inline uint64_t dt_clock_ns(void)
{
    return dt_clock_read(CLOCK_MONOTONIC);
}

static inline int64_t dt_clock_ms(void)
{
    return (int64_t)(dt_clock_ns() / 1000000);
}

#endif
