#include "runtime/host/spread.h"

#include <string.h>

#include "runtime/host/clock.h"

enum {
    LEAST_STEP = 64, /* waits */
    MOST_STEP = 64 * 1024,
    STAY = 100, /* times as long as the move took */
};

void dt_spread_start(struct dt_spread *p, bool used)
{
    *p = (struct dt_spread){ .used = used, .left = LEAST_STEP, .step = LEAST_STEP };
}

static void show(struct dt_spread *p, const struct dt_hostshm *map, uint32_t me, int cpu)
{
    if (p->cpu == (uint32_t)cpu + 1)
        return;
    p->cpu = (uint32_t)cpu + 1;
    atomic_store_explicit(&map->ranks[me].cpu, p->cpu, memory_order_relaxed);
}

int dt_spread_goal(const uint32_t *cpus, uint32_t n, uint32_t me, const cpu_set_t *allowed)
{
    uint32_t on[CPU_SETSIZE] = { 0 }, here = cpus[me] - 1, goal = here;

    for (uint32_t i = 0; i < n; i++) {
        if (cpus[i] < 1 || cpus[i] > CPU_SETSIZE || (i > me && cpus[i] == cpus[me]))
            return -1;
        on[cpus[i] - 1]++;
    }
    for (uint32_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, allowed) && on[cpu] < on[goal])
            goal = cpu;
    }
    return on[here] >= on[goal] + 2 ? (int)goal : -1;
}

/* To a thread that was not bound, all CPUs: else it would stay bound to those that its cpuset had,
 * and that were up, when it moved. (One that was bound to just these looks the same.) */
static bool give_back(const cpu_set_t *allowed)
{
    cpu_set_t all, now;

    memset(&all, 0xff, sizeof all);
    if (sched_setaffinity(0, sizeof all, &all) == 0 &&
        sched_getaffinity(0, sizeof now, &now) == 0 && CPU_EQUAL(&now, allowed))
        return true;
    return sched_setaffinity(0, sizeof *allowed, allowed) == 0;
}

/* The kernel moves a thread off CPUs that it may not run on. What it may is then as before. */
static bool go_to(int cpu, const cpu_set_t *allowed)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0 && give_back(allowed);
}

/* A CPU may have few ranks because the kernel keeps them away from somebody who has it for himself,
 * such as a real-time process. A rank that moves there cannot run, nor give its affinity back,
 * while that one does: moves that take long are to be few. */
static void move(struct dt_spread *p, const struct dt_hostshm *map, uint32_t me, int goal,
                 const cpu_set_t *allowed)
{
    uint64_t start = dt_clock_ns(), end;

    if (start < p->stays_until_ns || !go_to(goal, allowed))
        return;
    end = dt_clock_ns();
    p->stays_until_ns = end + STAY * (end - start);
    show(p, map, me, goal);
    if (p->step < MOST_STEP)
        p->step *= 2;
}

static void look(struct dt_spread *p, const struct dt_hostshm *map, uint32_t me, uint32_t n)
{
    uint32_t cpus[n];
    cpu_set_t allowed;
    int goal;

    for (uint32_t i = 0; i < n; i++)
        cpus[i] = atomic_load_explicit(&map->ranks[i].cpu, memory_order_relaxed);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    goal = dt_spread_goal(cpus, n, me, &allowed);
    if (goal >= 0)
        move(p, map, me, goal, &allowed);
}

void dt_spread_turn(struct dt_spread *p, const struct dt_hostshm *map, uint32_t me, uint32_t n)
{
    show(p, map, me, sched_getcpu());
    if (--p->left > 0)
        return;
    look(p, map, me, n);
    p->left = p->step;
}
