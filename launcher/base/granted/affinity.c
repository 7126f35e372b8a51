#include "launcher/base/granted/affinity.h"

enum { CPUS_MAX = 1 << 16 };

cpu_set_t *dt_affinity_read(size_t *size)
{
    for (size_t cpus = CPU_SETSIZE; cpus <= CPUS_MAX; cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC(cpus);

        *size = CPU_ALLOC_SIZE(cpus);
        if (set && sched_getaffinity(0, *size, set) == 0)
            return set;
        CPU_FREE(set);
    }
    return NULL;
}

uint32_t dt_affinity_count(void)
{
    size_t size;
    cpu_set_t *set = dt_affinity_read(&size);
    int n = set ? CPU_COUNT_S(size, set) : 0;

    CPU_FREE(set);
    return n > 0 ? (uint32_t)n : 1;
}
