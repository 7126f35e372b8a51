#include "launcher/place/bind.h"

#include <stdbool.h>
#include <stdlib.h>

static int compare_numbers(uint32_t a, uint32_t b)
{
    return a < b ? -1 : a > b;
}

static int compare(const void *a, const void *b)
{
    const struct dt_cpu *x = a, *y = b;
    int by_package = compare_numbers(x->package, y->package);
    int by_core = compare_numbers(x->core, y->core);

    return by_package ? by_package : by_core ? by_core : compare_numbers(x->id, y->id);
}

void dt_cpus_sort(struct dt_cpus *cpus)
{
    qsort(cpus->v, cpus->n, sizeof *cpus->v, compare);
}

static bool begins_package(const struct dt_cpus *cpus, uint32_t i)
{
    return i == 0 || cpus->v[i].package != cpus->v[i - 1].package;
}

static bool begins_core(const struct dt_cpus *cpus, uint32_t i)
{
    return begins_package(cpus, i) || cpus->v[i].core != cpus->v[i - 1].core;
}

static uint32_t packages(const struct dt_cpus *cpus)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < cpus->n; i++)
        n += begins_package(cpus, i);
    return n;
}

uint32_t dt_cpus_cores(const struct dt_cpus *cpus)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < cpus->n; i++)
        n += begins_core(cpus, i);
    return n;
}

/* Adds the hardware threads of the cores from first up to, but not including, end. */
static void take_cores(struct dt_u32s *own, const struct dt_cpus *cpus, uint32_t first,
                       uint32_t end)
{
    uint32_t core = 0;

    for (uint32_t i = 0; i < cpus->n; i++) {
        core += begins_core(cpus, i);
        if (core > first && core <= end)
            own->v[own->n++] = cpus->v[i].id;
    }
}

/* Neighbours in rank are neighbours in the machine. */
static uint32_t bind_to_cores(struct dt_u32s *own, const struct dt_cpus *cpus, uint64_t local_rank,
                              uint32_t local_size)
{
    uint32_t cores = dt_cpus_cores(cpus);
    uint32_t first = (uint32_t)(local_rank * cores / local_size);
    uint32_t end = (uint32_t)((local_rank + 1) * cores / local_size);

    if (end == first)
        end++;
    take_cores(own, cpus, first, end);
    return end - first;
}

static uint32_t bind_to_package(struct dt_u32s *own, const struct dt_cpus *cpus,
                                uint32_t local_rank, uint32_t local_size)
{
    uint32_t all = packages(cpus), mine = local_rank % all;
    uint32_t sharers = (local_size - mine + all - 1) / all;
    uint32_t package = 0, cores = 0;

    for (uint32_t i = 0; i < cpus->n; i++) {
        package += begins_package(cpus, i);
        if (package != mine + 1)
            continue;
        cores += begins_core(cpus, i);
        own->v[own->n++] = cpus->v[i].id;
    }
    return cores > sharers ? cores / sharers : 1;
}

uint32_t dt_bind(struct dt_u32s *own, enum dt_bind_to to, const struct dt_cpus *cpus,
                 uint32_t local_rank, uint32_t local_size)
{
    uint32_t cores = dt_cpus_cores(cpus);

    own->n = 0;
    if (to == DT_BIND_CORE)
        return bind_to_cores(own, cpus, local_rank, local_size);
    if (to == DT_BIND_SOCKET)
        return bind_to_package(own, cpus, local_rank, local_size);
    take_cores(own, cpus, 0, cores);
    return cores > local_size ? cores / local_size : 1;
}
