/* --bind-to: which CPUs each rank of a host may use. Pure. */
#ifndef DT_PLACE_BIND_H
#define DT_PLACE_BIND_H

#include <stdint.h>

#include "runtime/wire/codec.h"

enum dt_bind_to {
    DT_BIND_NONE,
    DT_BIND_CORE, /* each rank gets cores of its own, in nearly equal shares */
    /* each rank gets all CPUs of one of these, in turn: */
    DT_BIND_SOCKET,
    DT_BIND_NUMA,
    DT_BIND_L3,
    DT_BIND_HWTHREAD, /* each rank gets hardware threads of its own, in nearly equal shares */
};

struct dt_cpu { /* a hardware thread */
    uint32_t package;
    uint32_t numa;
    uint32_t l3;   /* the lowest id of the CPUs that share the cache */
    uint32_t core; /* the lowest id of its hardware threads, which is unique among cores */
    uint32_t id;
};

struct dt_cpus {
    struct dt_cpu *v;
    uint32_t n;
};

/* Sorts the CPUs as dt_bind expects them: by package, then by core. */
void dt_cpus_sort(struct dt_cpus *cpus);
uint32_t dt_cpus_cores(const struct dt_cpus *cpus);

/* Fills own, which has room for all CPUs, with the CPUs that one of local_size ranks may use. cpus
 * has at least one. A core comes with all its hardware threads in cpus, except with
 * DT_BIND_HWTHREAD. If there are more ranks than cores (or threads), some ranks share one. Returns
 * how many cores (or threads) the rank has for itself, at least 1. */
uint32_t dt_bind(struct dt_u32s *own, enum dt_bind_to to, const struct dt_cpus *cpus,
                 uint32_t local_rank, uint32_t local_size);

#endif
