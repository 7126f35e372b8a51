#include "runtime/checkpoint/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* maximum length of a job id in a name; its random end distinguishes jobs */
enum { JOB_MAX = 100 };

static const char save_prefix[] = ".save-";
static const char replaced_prefix[] = ".replaced-";
static const char trash_prefix[] = ".trash-";

static const char *short_job(const struct dt_owner *me)
{
    size_t n = strlen(me->job_id);

    return n > JOB_MAX ? me->job_id + n - JOB_MAX : me->job_id;
}

static bool starts_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* The step of "step_N", or -1. Accepts only the spelling that dtrun writes. */
static int64_t step_of(const char *name)
{
    struct dt_name again;
    long long step;
    char *end;

    if (!starts_with(name, "step_") || name[5] < '0' || name[5] > '9')
        return -1;
    step = strtoll(name + 5, &end, 10);
    again = dt_name_checkpoint(step);
    return *end == '\0' && strcmp(again.s, name) == 0 ? step : -1;
}

/* Whether this is unfinished work of a later generation of this job. */
static bool is_later(const char *name, const struct dt_owner *me)
{
    struct dt_name mine;
    unsigned long generation;
    char *end;

    snprintf(mine.s, sizeof mine.s, "%s%s-g", save_prefix, short_job(me));
    if (!starts_with(name, mine.s))
        return false;
    name += strlen(mine.s);
    generation = strtoul(name, &end, 10);
    return end > name && *end == '-' && generation > me->generation;
}

struct dt_entry dt_entry_of(const char *name, const struct dt_owner *me)
{
    struct dt_entry e = { .kind = DT_ENTRY_OTHER, .step = -1 };

    if ((e.step = step_of(name)) >= 0)
        e.kind = DT_ENTRY_CHECKPOINT;
    else if (starts_with(name, replaced_prefix) &&
             (e.step = step_of(name + strlen(replaced_prefix))) >= 0)
        e.kind = DT_ENTRY_REPLACED;
    else if (starts_with(name, trash_prefix))
        e.kind = DT_ENTRY_TRASH;
    else if (starts_with(name, save_prefix) && !is_later(name, me))
        e.kind = DT_ENTRY_LEFT_BEHIND;
    return e;
}

struct dt_name dt_name_checkpoint(int64_t step)
{
    struct dt_name n;

    snprintf(n.s, sizeof n.s, "step_%012lld", (long long)step);
    return n;
}

struct dt_name dt_name_replaced(int64_t step)
{
    struct dt_name n;

    snprintf(n.s, sizeof n.s, "%sstep_%012lld", replaced_prefix, (long long)step);
    return n;
}

struct dt_name dt_name_unfinished(const struct dt_owner *me, const char *what)
{
    struct dt_name n;

    snprintf(n.s, sizeof n.s, "%s%s-g%u-%.64s", save_prefix, short_job(me), me->generation, what);
    return n;
}

struct dt_name dt_name_trash(const struct dt_owner *me, int64_t step, uint32_t number)
{
    struct dt_name n;

    snprintf(n.s, sizeof n.s, "%s%s-g%u-step_%012lld-%u", trash_prefix, short_job(me),
             me->generation, (long long)step, number);
    return n;
}

struct dt_name dt_name_earlier(const struct dt_owner *me, uint32_t number)
{
    struct dt_name n;

    snprintf(n.s, sizeof n.s, "earlier-%s-g%u-%u", short_job(me), me->generation, number);
    return n;
}

struct dt_name dt_name_shard(uint32_t rank)
{
    struct dt_name n;

    snprintf(n.s, sizeof n.s, "rank_%05u.shard", rank);
    return n;
}

static int newest_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x < y) - (x > y);
}

void dt_steps_sort(int64_t *steps, size_t n)
{
    if (n)
        qsort(steps, n, sizeof *steps, newest_first);
}

size_t dt_steps_after(int64_t *steps, size_t n, int64_t step)
{
    size_t after = 0;

    dt_steps_sort(steps, n);
    while (after < n && steps[after] > step)
        after++;
    for (size_t i = 0; i < after / 2; i++) {
        int64_t lower = steps[after - 1 - i];

        steps[after - 1 - i] = steps[i];
        steps[i] = lower;
    }
    return after;
}

size_t dt_steps_retire(int64_t *steps, size_t n, int64_t committed, size_t keep)
{
    size_t gone = 0, seen = 0;

    dt_steps_sort(steps, n);
    for (size_t i = 0; i < n; i++)
        if (steps[i] <= committed && seen++ >= keep)
            steps[gone++] = steps[i];
    return gone;
}
