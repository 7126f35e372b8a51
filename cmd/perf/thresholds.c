#include "cmd/perf/thresholds.h"

#include "cmd/perf/ops.h"
#include "runtime/base/tuning.h"

/* ---- in which launches ---- */

static bool shares_memory(const struct dt_perf_launch *l)
{
    return l->ranks > 1;
}

static bool has_cpus(const struct dt_perf_launch *l)
{
    return l->ranks > 1 && !l->crowded;
}

static bool is_crowded(const struct dt_perf_launch *l)
{
    return l->ranks > 1 && l->crowded;
}

static bool has_few_hosts(const struct dt_perf_launch *l)
{
    return l->hosts > 1 && l->hosts <= 16;
}

static bool has_a_ring(const struct dt_perf_launch *l)
{
    return l->hosts > 2 && l->hosts <= 16;
}

static bool has_three_hosts(const struct dt_perf_launch *l)
{
    return l->hosts > 2;
}

static bool has_hosts(const struct dt_perf_launch *l)
{
    return l->hosts > 1;
}

static bool has_cpus_and_hosts(const struct dt_perf_launch *l)
{
    return l->hosts > 1 && !l->crowded;
}

static bool has_lanes(const struct dt_perf_launch *l)
{
    return l->hosts > 1 && l->width > 1;
}

static bool has_hosts_of_several(const struct dt_perf_launch *l)
{
    return l->hosts > 1 && l->size > l->hosts;
}

/* ---- of what a size is ---- */

static size_t of_block(const struct dt_perf_launch *l, size_t bytes)
{
    (void)l;
    return bytes;
}

static size_t of_host(const struct dt_perf_launch *l, size_t bytes)
{
    return bytes / (size_t)l->ranks;
}

static size_t of_all(const struct dt_perf_launch *l, size_t bytes)
{
    return bytes / (size_t)l->size;
}

static size_t of_lane(const struct dt_perf_launch *l, size_t bytes)
{
    return bytes * (size_t)l->width;
}

/* What the lanes of all hosts fold at a time. */
static size_t of_all_lanes(const struct dt_perf_launch *l, size_t bytes)
{
    return bytes / (size_t)(l->hosts * l->width);
}

/* ---- by which calls ---- */

const struct dt_perf_use dt_perf_all_reduce[] = { { "all_reduce", of_block }, { 0 } };
static const struct dt_perf_use all_reduce_of_lanes[] = { { "all_reduce", of_lane }, { 0 } };
static const struct dt_perf_use sendrecv[] = { { "sendrecv", of_block }, { 0 } };
static const struct dt_perf_use open_whole[] = { { "all_reduce", of_block },
                                                 { "broadcast", of_block },
                                                 { 0 } };
static const struct dt_perf_use open_parts[] = {
    { "all_gather", of_block }, { "all_to_all", of_host }, { "reduce_scatter", of_host }, { 0 }
};
static const struct dt_perf_use reduce[] = { { "reduce", of_block }, { 0 } };
static const struct dt_perf_use reduce_to_parts[] = { { "reduce", of_block },
                                                      { "reduce_scatter", of_all_lanes },
                                                      { 0 } };
static const struct dt_perf_use all_gather[] = { { "all_gather", of_all }, { 0 } };
static const struct dt_perf_use broadcast[] = { { "broadcast", of_block }, { 0 } };

/* ---- the tables ---- */

#define KEY(name) #name, offsetof(struct dt_tuning, name)
/* One rank of each host talks to others, whatever the size. */
#define ONE_LANE "net_lane = 1G\n"

static const struct dt_perf_crossover crossovers[] = {
    { KEY(shm_small), DT_PERF_OF_RANKS, has_cpus, .uses = dt_perf_all_reduce, .from = 1 << 10,
      .to = 256 << 10, .low = "shm_small = 1M", .high = "shm_small = 0" },
    { KEY(shm_small_crowded), DT_PERF_OF_RANKS, is_crowded, .uses = dt_perf_all_reduce,
      .from = 1 << 10, .to = 256 << 10, .low = "shm_small_crowded = 1M",
      .high = "shm_small_crowded = 0" },
    { KEY(shm_direct), DT_PERF_OF_RANKS, shares_memory, .uses = sendrecv, .from = 32 << 10,
      .to = 1 << 20, .first_of_high = true, .low = "shm_direct = 1G", .high = "shm_direct = 0" },
    { KEY(shm_direct_fold), DT_PERF_OF_RANKS, shares_memory, .uses = dt_perf_all_reduce,
      .from = 8 << 10, .to = 8 << 20, .first_of_high = true, .low = "shm_direct_fold = 1G",
      .high = "shm_direct_fold = 1" },
    { KEY(shm_huge), DT_PERF_OF_RANKS, shares_memory, .uses = dt_perf_all_reduce, .from = 1 << 20,
      .to = 64 << 20, .first_of_high = true, .low = "shm_huge = 1G", .high = "shm_huge = 0" },
    { KEY(shm_open), DT_PERF_OF_RANKS, shares_memory, .uses = open_whole, .shared = true,
      .from = 256, .to = 64 << 10, .first_of_high = true, .low = "shm_open = 1G",
      .high = "shm_open = 0" },
    { KEY(shm_open_parts), DT_PERF_OF_RANKS, has_cpus, .uses = open_parts, .shared = true,
      .from = 1 << 10, .to = 256 << 10, .first_of_high = true, .low = "shm_open_parts = 1G",
      .high = "shm_open_parts = 0" },
    { KEY(shm_open_parts_crowded), DT_PERF_OF_RANKS, is_crowded, .uses = open_parts, .shared = true,
      .from = 1 << 10, .to = 256 << 10, .first_of_high = true, .low = "shm_open_parts_crowded = 1G",
      .high = "shm_open_parts_crowded = 0" },
    { KEY(net_exchange), DT_PERF_OF_HOSTS, has_few_hosts, .uses = dt_perf_all_reduce,
      .from = 1 << 10, .to = 1 << 20, .low = ONE_LANE "net_exchange = 1G",
      .high = ONE_LANE "net_exchange = 0\nnet_direct = 1G" },
    { KEY(net_gather), DT_PERF_OF_HOSTS, has_three_hosts, .uses = dt_perf_all_reduce,
      .from = 1 << 10, .to = 512 << 10, .low = ONE_LANE "net_exchange = 0\nnet_gather = 1M",
      .high = ONE_LANE "net_exchange = 0\nnet_gather = 0\nnet_direct = 1G" },
    { KEY(net_direct), DT_PERF_OF_HOSTS, has_a_ring, .uses = dt_perf_all_reduce, .from = 64 << 10,
      .to = 16 << 20, .low = ONE_LANE "net_exchange = 0\nnet_gather = 0\nnet_direct = 1G",
      .high = ONE_LANE "net_exchange = 0\nnet_gather = 0\nnet_direct = 0" },
    { KEY(net_lane), DT_PERF_OF_HOSTS, has_lanes, .uses = all_reduce_of_lanes, .from = 16 << 10,
      .to = 4 << 20, .first_of_high = true, .low = ONE_LANE, .high = "net_lane = 0" },
    { KEY(net_collect), DT_PERF_OF_HOSTS, has_a_ring, .uses = reduce, .from = 16 << 10,
      .to = 16 << 20, .low = "net_parts = 0\nnet_collect = 1G",
      .high = "net_parts = 0\nnet_collect = 0" },
    { KEY(net_parts), DT_PERF_OF_HOSTS, has_few_hosts, .uses = reduce_to_parts, .from = 512,
      .to = 512 << 10, .first_of_high = true, .low = "net_parts = 1G", .high = "net_parts = 0" },
    { KEY(net_blocks), DT_PERF_OF_HOSTS, has_hosts_of_several, .uses = all_gather, .from = 4 << 10,
      .to = 16 << 20, .first_of_high = true, .low = "net_blocks = 1G", .high = "net_blocks = 0" },
    { KEY(net_tree), DT_PERF_OF_HOSTS, has_three_hosts, .uses = broadcast, .from = 4 << 10,
      .to = 4 << 20, .low = "net_tree = 1G", .high = "net_tree = 0" },
};

static const struct dt_perf_budget budgets[] = {
    { KEY(shm_spins), DT_PERF_OF_RANKS, has_cpus, 0, "", { 250, 500, 1000, 2000, 4000, 8000 } },
    { KEY(shm_yields),
      DT_PERF_OF_RANKS,
      has_cpus,
      0,
      "shm_spins = 0\n",
      { 25, 50, 100, 200, 400, 800 } },
    { KEY(shm_yields_crowded), DT_PERF_OF_RANKS, is_crowded, 0, "", { 10, 25, 50, 100, 200, 400 } },
    { KEY(net_spins), DT_PERF_OF_HOSTS, has_cpus_and_hosts, 0, "", { 25, 50, 100, 200, 400, 800 } },
    { KEY(net_streams), DT_PERF_OF_HOSTS, has_hosts, 4 << 20, "", { 1, 2, 3, 4, 8, 16 } },
};

#undef KEY
#undef ONE_LANE

const struct dt_perf_crossover *dt_perf_crossover_at(size_t i)
{
    return i < sizeof crossovers / sizeof *crossovers ? &crossovers[i] : NULL;
}

const struct dt_perf_budget *dt_perf_budget_at(size_t i)
{
    return i < sizeof budgets / sizeof *budgets ? &budgets[i] : NULL;
}

/* ---- buffers ---- */

static bool fits(const struct dt_perf_use *use, const struct dt_perf_launch *l, size_t ranks,
                 size_t bytes, size_t room)
{
    const struct dt_perf_op *op = dt_perf_op_find(use->collective);

    return use->block(l, bytes) <= room / (op->many_in || op->many_out ? ranks : 1);
}

size_t dt_perf_crossover_to(const struct dt_perf_crossover *x, const struct dt_perf_launch *l,
                            size_t room)
{
    size_t ranks = (size_t)(x->number == DT_PERF_OF_RANKS ? l->most_ranks : l->size), to = x->to;

    for (size_t i = 0; x->uses[i].collective; i++) {
        while (to > x->from && !fits(&x->uses[i], l, ranks, to, room))
            to /= 2;
    }
    return to;
}
