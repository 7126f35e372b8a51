#include "cmd/perf/thresholds.h"

#include "runtime/base/tuning.h"

/* ---- launches ---- */

static bool shares_memory(const struct dt_perf_launch *l)
{
    return l->ranks > 1;
}

static bool has_few_hosts(const struct dt_perf_launch *l)
{
    return l->hosts > 1 && l->hosts <= 16;
}

static bool has_a_ring(const struct dt_perf_launch *l)
{
    return l->hosts > 2 && l->hosts <= 16;
}

static bool has_more_leaders(const struct dt_perf_launch *l)
{
    return l->hosts > 1 && l->width > 1;
}

/* ---- sizes of blocks ---- */

/* If ranks share CPUs, a multiple of the size still counts as small. */
static size_t of_small(const struct dt_perf_launch *l, size_t bytes)
{
    return l->crowded ? bytes * DT_TUNING_CROWDED : bytes;
}

static size_t per_leader(const struct dt_perf_launch *l, size_t bytes)
{
    return bytes * (size_t)l->width;
}

/* ---- the table ---- */

#define KEY(name) #name, offsetof(struct dt_tuning, name)
/* Only one rank of each host talks to other hosts, whatever the size. */
#define ONE_LEADER "net_leader = 1G\n"

static const struct dt_perf_crossover crossovers[] = {
    { KEY(shm_small), DT_PERF_OF_RANKS, shares_memory, .collective = "all_reduce",
      .block = of_small, .from = 1 << 10, .to = 256 << 10, .low = "shm_small = 1M",
      .high = "shm_small = 0" },
    { KEY(shm_direct), DT_PERF_OF_RANKS, shares_memory, .collective = "sendrecv", .from = 32 << 10,
      .to = 1 << 20, .first_of_high = true, .low = "shm_direct = 1G", .high = "shm_direct = 0" },
    { KEY(shm_direct_reduce), DT_PERF_OF_RANKS, shares_memory, .collective = "all_reduce",
      .from = 8 << 10, .to = 8 << 20, .first_of_high = true, .low = "shm_direct_reduce = 1G",
      .high = "shm_direct_reduce = 1" },
    { KEY(shm_huge), DT_PERF_OF_RANKS, shares_memory, .collective = "all_reduce", .from = 1 << 20,
      .to = 64 << 20, .first_of_high = true, .low = "shm_huge = 1G", .high = "shm_huge = 0" },
    { KEY(net_exchange), DT_PERF_OF_HOSTS, has_few_hosts, .collective = "all_reduce",
      .from = 1 << 10, .to = 1 << 20, .low = ONE_LEADER "net_exchange = 1G",
      .high = ONE_LEADER "net_exchange = 0\nnet_direct = 1G" },
    { KEY(net_direct), DT_PERF_OF_HOSTS, has_a_ring, .collective = "all_reduce", .from = 64 << 10,
      .to = 16 << 20, .low = ONE_LEADER "net_exchange = 0\nnet_direct = 1G",
      .high = ONE_LEADER "net_exchange = 0\nnet_direct = 0" },
    { KEY(net_leader), DT_PERF_OF_HOSTS, has_more_leaders, .collective = "all_reduce",
      .block = per_leader, .from = 16 << 10, .to = 4 << 20, .first_of_high = true,
      .low = ONE_LEADER, .high = "net_leader = 0" },
};

#undef KEY
#undef ONE_LEADER

const struct dt_perf_crossover *dt_perf_crossover_at(size_t i)
{
    return i < sizeof crossovers / sizeof *crossovers ? &crossovers[i] : NULL;
}
