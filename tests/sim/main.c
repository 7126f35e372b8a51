/* sim [--seeds N] [--seed K] [--hosts N]: runs the engine of a job in simulated worlds, one for
 * each seed. A failing seed is shrunk to the faults that matter. --seed runs one seed and prints
 * every event. --hosts shows the cost of a large job. */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "tests/sim/world.h"

enum { SEEDS = 2000 };

static double seconds(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool run(const struct sim_scenario *s, bool trace, uint64_t *events, char broken[512])
{
    struct sim_world w;
    bool well = sim_world_run(&w, s, trace);

    *events += w.events;
    memcpy(broken, w.broken, sizeof w.broken);
    sim_world_free(&w);
    return well;
}

static void drop(struct sim_scenario *s, uint32_t i)
{
    s->nfaults--;
    memmove(&s->faults[i], &s->faults[i + 1], (s->nfaults - i) * sizeof *s->faults);
}

/* Drops each fault without which the seed still fails. */
static void shrink(struct sim_scenario *s)
{
    char broken[512];
    uint64_t events = 0;
    uint32_t i = 0;

    while (i < s->nfaults) {
        struct sim_scenario less = *s;

        drop(&less, i);
        if (run(&less, false, &events, broken)) {
            i++;
            continue;
        }
        *s = less;
        i = 0;
    }
}

static void report(struct sim_scenario *s, const char *broken)
{
    char now[512];
    uint64_t events = 0;

    printf("# seed %" PRIu64 ": %s\n", s->seed, broken);
    shrink(s);
    run(s, false, &events, now);
    printf("# shrunk: %s\n", now);
    sim_scenario_print(s, stdout);
}

static int run_seeds(uint64_t from, uint64_t seeds, uint64_t enough)
{
    double began = seconds(CLOCK_MONOTONIC);
    uint64_t events = 0, failed = 0, ran = 0;
    char broken[512];

    for (; ran < seeds && failed < enough; ran++) {
        struct sim_scenario s;

        sim_scenario_make(&s, from + ran);
        if (run(&s, false, &events, broken))
            continue;
        failed++;
        report(&s, broken);
        fflush(stdout);
    }
    printf("sim: %" PRIu64 " seeds, %" PRIu64 " failed, %" PRIu64 " events, %.1f s\n", ran, failed,
           events, seconds(CLOCK_MONOTONIC) - began);
    return failed ? 1 : 0;
}

static int replay(uint64_t seed, bool shrunk)
{
    struct sim_scenario s;
    char broken[512];
    uint64_t events = 0;
    bool well;

    sim_scenario_make(&s, seed);
    if (shrunk && !run(&s, false, &events, broken))
        shrink(&s);
    sim_scenario_print(&s, stdout);
    well = run(&s, true, &events, broken);
    printf("sim: 1 seeds, %d failed, %" PRIu64 " events%s%s\n", !well, events, well ? "" : ": ",
           broken);
    return well ? 0 : 1;
}

static int run_large(uint32_t hosts)
{
    double began = seconds(CLOCK_PROCESS_CPUTIME_ID), took;
    struct sim_scenario s;
    struct rusage usage;
    uint64_t events = 0;
    char broken[512];
    bool well;

    sim_scenario_make_large(&s, hosts);
    well = run(&s, false, &events, broken);
    took = seconds(CLOCK_PROCESS_CPUTIME_ID) - began;
    getrusage(RUSAGE_SELF, &usage);
    printf("%u hosts, %u ranks, %" PRIu64 " events: %.1f s, %.2f ms a host, %.1f us an event, "
           "%.0f MiB, %.1f KiB a host%s%s\n",
           hosts, s.np, events, took, took * 1e3 / hosts, took * 1e6 / (double)events,
           (double)usage.ru_maxrss / 1024, (double)usage.ru_maxrss / hosts, well ? "" : ": ",
           broken);
    return well ? 0 : 1;
}

int main(int argc, char **argv)
{
    static const struct option options[] = { { "seeds", required_argument, NULL, 'n' },
                                             { "seed", required_argument, NULL, 's' },
                                             { "hosts", required_argument, NULL, 'h' },
                                             { "from", required_argument, NULL, 'f' },
                                             { "first", no_argument, NULL, '1' },
                                             { "shrunk", no_argument, NULL, 'm' },
                                             { NULL, 0, NULL, 0 } };
    uint64_t seeds = SEEDS, from = 1, enough = UINT64_MAX, seed = 0;
    bool one = false, shrunk = false;
    uint32_t hosts = 0;

    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 'n')
            seeds = strtoull(optarg, NULL, 10);
        else if (c == 's')
            seed = strtoull(optarg, NULL, 10), one = true;
        else if (c == 'f')
            from = strtoull(optarg, NULL, 10);
        else if (c == 'h')
            hosts = (uint32_t)strtoul(optarg, NULL, 10);
        else if (c == 'm')
            shrunk = true;
        else if (c == '1')
            enough = 1;
        else
            return 2;
    }
    if (hosts)
        return run_large(hosts);
    return one ? replay(seed, shrunk) : run_seeds(from, seeds, enough);
}
