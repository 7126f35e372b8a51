/* dtrun's clock is CLOCK_BOOTTIME, which also counts the time that a machine sleeps. */
#ifndef DT_BASE_CLOCK_H
#define DT_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t dt_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Returns by how much the wall clock is ahead of dtrun's. */
static inline int64_t dt_wall_ahead_ns(void)
{
    uint64_t boot = dt_now_ns();
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec - (int64_t)boot;
}

#endif
