#include "launcher/place/bind.h"

#include <stdbool.h>
#include <stdlib.h>

static int compare_numbers(uint32_t a, uint32_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_cpus(const void *a, const void *b)
{
    const struct dt_cpu *x = a, *y = b;
    int by_package = compare_numbers(x->package, y->package);
    int by_core = compare_numbers(x->core, y->core);

    return by_package ? by_package : by_core ? by_core : compare_numbers(x->id, y->id);
}

void dt_cpus_sort(struct dt_cpus *cpus)
{
    qsort(cpus->v, cpus->n, sizeof *cpus->v, compare_cpus);
}

static bool begins_package(const struct dt_cpus *cpus, uint32_t i)
{
    return i == 0 || cpus->v[i].package != cpus->v[i - 1].package;
}

static bool begins_core(const struct dt_cpus *cpus, uint32_t i)
{
    return begins_package(cpus, i) || cpus->v[i].core != cpus->v[i - 1].core;
}

uint32_t dt_cpus_cores(const struct dt_cpus *cpus)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < cpus->n; i++)
        n += begins_core(cpus, i);
    return n;
}

/* Divides n things into consecutive, nearly equal parts, and computes the part of this rank. */
static void part_of(uint32_t n, uint64_t local_rank, uint32_t local_size, uint32_t *first,
                    uint32_t *end)
{
    *first = (uint32_t)(local_rank * n / local_size);
    *end = (uint32_t)((local_rank + 1) * n / local_size);
    if (*end == *first)
        ++*end;
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

/* Neighbouring ranks get neighbouring cores. */
static uint32_t bind_to_cores(struct dt_u32s *own, const struct dt_cpus *cpus, uint32_t local_rank,
                              uint32_t local_size)
{
    uint32_t first, end;

    part_of(dt_cpus_cores(cpus), local_rank, local_size, &first, &end);
    take_cores(own, cpus, first, end);
    return end - first;
}

static uint32_t bind_to_threads(struct dt_u32s *own, const struct dt_cpus *cpus,
                                uint32_t local_rank, uint32_t local_size)
{
    uint32_t first, end;

    part_of(cpus->n, local_rank, local_size, &first, &end);
    for (uint32_t i = first; i < end; i++)
        own->v[own->n++] = cpus->v[i].id;
    return end - first;
}

static uint32_t domain_of(const struct dt_cpu *cpu, enum dt_bind_to to)
{
    return to == DT_BIND_SOCKET ? cpu->package : to == DT_BIND_NUMA ? cpu->numa : cpu->l3;
}

static bool begins_domain(const struct dt_cpus *cpus, uint32_t i, enum dt_bind_to to)
{
    for (uint32_t k = 0; k < i; k++)
        if (domain_of(&cpus->v[k], to) == domain_of(&cpus->v[i], to))
            return false;
    return true;
}

/* Returns the n-th domain in the order of the CPUs. */
static uint32_t nth_domain(const struct dt_cpus *cpus, enum dt_bind_to to, uint32_t n)
{
    for (uint32_t i = 0; i < cpus->n; i++)
        if (begins_domain(cpus, i, to) && n-- == 0)
            return domain_of(&cpus->v[i], to);
    return 0;
}

static uint32_t count_domains(const struct dt_cpus *cpus, enum dt_bind_to to)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < cpus->n; i++)
        n += begins_domain(cpus, i, to);
    return n;
}

static uint32_t bind_to_domain(struct dt_u32s *own, enum dt_bind_to to, const struct dt_cpus *cpus,
                               uint32_t local_rank, uint32_t local_size)
{
    uint32_t all = count_domains(cpus, to), mine = local_rank % all;
    uint32_t sharers = (local_size - mine + all - 1) / all;
    uint32_t domain = nth_domain(cpus, to, mine), cores = 0;

    for (uint32_t i = 0; i < cpus->n; i++) {
        if (domain_of(&cpus->v[i], to) != domain)
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
    switch (to) {
    case DT_BIND_CORE:
        return bind_to_cores(own, cpus, local_rank, local_size);
    case DT_BIND_HWTHREAD:
        return bind_to_threads(own, cpus, local_rank, local_size);
    case DT_BIND_SOCKET:
    case DT_BIND_NUMA:
    case DT_BIND_L3:
        return bind_to_domain(own, to, cpus, local_rank, local_size);
    default:
        take_cores(own, cpus, 0, cores);
        return cores > local_size ? cores / local_size : 1;
    }
}
