#include "launcher/base/granted/limits.h"

#include <stdio.h>
#include <stdlib.h>

#include "launcher/base/granted/affinity.h"
#include "launcher/base/granted/cgroupdir.h"
#include "launcher/base/mem.h"
#include "launcher/base/slurp.h"

enum { FILE_MAX = 64 * 1024 };

/* Returns how many numbers (at most 2) the file holds. "max" is not a number. */
static int read_numbers(const char *dir, const char *name, long long numbers[2])
{
    char *path = dt_xasprintf("%s/%s", dir, name);
    struct dt_strbuf text = { 0 };
    int n = 0;

    if (dt_slurp(&text, path, FILE_MAX, NULL) == 0)
        n = sscanf(dt_strbuf_text(&text), "%lld %lld", &numbers[0], &numbers[1]);
    dt_strbuf_free(&text);
    free(path);
    return n < 0 ? 0 : n;
}

static void limit_cpu(struct dt_limits *l, long long quota, long long period)
{
    double hundredths = period > 0 ? 100.0 * (double)quota / (double)period : 0;

    if (quota > 0 && hundredths >= 1 && (l->cpu == 0 || hundredths < l->cpu))
        l->cpu = hundredths < UINT32_MAX ? (uint32_t)hundredths : UINT32_MAX;
}

/* Version 1 writes "no limit" as a number larger than any memory. */
static void limit_memory(struct dt_limits *l, long long bytes)
{
    if (bytes > 0 && bytes < 1LL << 60 && (l->memory == 0 || (uint64_t)bytes < l->memory))
        l->memory = (uint64_t)bytes;
}

static void look_cpu_1(void *limits, const char *dir)
{
    long long quota[2], period[2];

    if (read_numbers(dir, "cpu.cfs_quota_us", quota) == 1 &&
        read_numbers(dir, "cpu.cfs_period_us", period) == 1)
        limit_cpu(limits, quota[0], period[0]);
}

static void look_cpu_2(void *limits, const char *dir)
{
    long long v[2];

    if (read_numbers(dir, "cpu.max", v) == 2)
        limit_cpu(limits, v[0], v[1]);
}

static void look_memory_1(void *limits, const char *dir)
{
    long long v[2];

    if (read_numbers(dir, "memory.limit_in_bytes", v) == 1)
        limit_memory(limits, v[0]);
}

static void look_memory_2(void *limits, const char *dir)
{
    long long v[2];

    if (read_numbers(dir, "memory.max", v) == 1)
        limit_memory(limits, v[0]);
}

void dt_limits_read(struct dt_limits *limits, const char *root)
{
    static const struct {
        const char *controller;
        void (*look[2])(void *limits, const char *dir); /* for version 1 and version 2 */
    } limited[] = {
        { "cpu", { look_cpu_1, look_cpu_2 } },
        { "memory", { look_memory_1, look_memory_2 } },
    };

    *limits = (struct dt_limits){ 0 };
    for (size_t i = 0; i < sizeof limited / sizeof *limited; i++) {
        struct dt_cgroupdir d;

        if (dt_cgroupdir_find(&d, root, limited[i].controller))
            dt_cgroupdir_climb(&d, limited[i].look[d.version - 1], limits);
        dt_cgroupdir_free(&d);
    }
}

/* A container may run on all CPUs of the machine, and get the time of a few. */
uint32_t dt_limits_cpus(const char *root)
{
    uint32_t allowed = dt_affinity_count(), granted;
    struct dt_limits limits;

    dt_limits_read(&limits, root);
    granted = limits.cpu / 100 + (limits.cpu % 100 != 0);
    return granted && granted < allowed ? granted : allowed;
}

struct refusal {
    uint32_t wanted;
    char *text;
};

static void look_tasks(void *refusal, const char *dir)
{
    struct refusal *r = refusal;
    long long max[2], now[2];

    if (!r->text && read_numbers(dir, "pids.max", max) == 1 &&
        read_numbers(dir, "pids.current", now) == 1 && now[0] + r->wanted > max[0])
        r->text =
            dt_xasprintf("the cgroup %s allows %lld processes and threads (pids.max)", dir, max[0]);
}

char *dt_limits_tasks(const char *root, uint32_t wanted)
{
    struct refusal r = { .wanted = wanted };
    struct dt_cgroupdir d;

    if (dt_cgroupdir_find(&d, root, "pids"))
        dt_cgroupdir_climb(&d, look_tasks, &r);
    dt_cgroupdir_free(&d);
    return r.text;
}
