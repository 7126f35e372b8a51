#include "launcher/job/state/restart.h"

struct dt_restart dt_restart_init(int max_restarts)
{
    return (struct dt_restart){
        .max_restarts = max_restarts, .newest = -1, .newest_last = -1, .reached = -1
    };
}

void dt_restart_committed(struct dt_restart *r, int64_t step)
{
    r->checkpoints = true;
    r->saved = true;
    r->newest = step;
}

void dt_restart_restored(struct dt_restart *r, int64_t step)
{
    r->checkpoints = true;
    r->newest = step;
}

static bool has_progressed(const struct dt_restart *r)
{
    return r->restarts == 0 || r->newest > r->newest_last;
}

enum dt_restart_verdict dt_restart_verdict(const struct dt_restart *r, bool exited)
{
    if (r->max_restarts >= 0)
        return r->restarts < (uint32_t)r->max_restarts ? DT_RESTART_YES : DT_RESTART_LIMIT;
    if (!r->checkpoints && (!r->restoring || exited))
        return DT_RESTART_NO_CHECKPOINT;
    if (r->linked && !has_progressed(r) && r->no_progress >= DT_RESTARTS_WITHOUT_PROGRESS)
        return DT_RESTART_NO_PROGRESS;
    return DT_RESTART_YES;
}

void dt_restart_count(struct dt_restart *r, double ran_s)
{
    bool has_run = !r->checkpoints && ran_s >= DT_RESTART_RUN_S;

    r->no_progress = has_run || has_progressed(r) ? 1 : r->no_progress + 1;
    r->newest_last = r->newest;
    r->restarts++;
}

unsigned dt_restart_delay_s(const struct dt_restart *r)
{
    unsigned delay = 0;

    for (uint32_t i = 1; i < r->no_progress && delay < DT_RESTART_DELAY_MAX_S; i++)
        delay = delay ? 2 * delay : 1;
    return delay < DT_RESTART_DELAY_MAX_S ? delay : DT_RESTART_DELAY_MAX_S;
}

int64_t dt_restart_lost_steps(int64_t reached, int64_t restored)
{
    int64_t from = restored < 0 ? 0 : restored;

    return reached > from ? reached - from : 0;
}

void dt_restart_reached(struct dt_restart *r, int64_t step, bool exited)
{
    if (step > r->reached)
        r->reached = step;
    r->reached_is_sure |= exited && step >= 0;
}

int64_t dt_restart_go_on(struct dt_restart *r, int64_t restored)
{
    int64_t lost = r->reached_is_sure ? dt_restart_lost_steps(r->reached, restored) : -1;

    r->reached = restored;
    r->reached_is_sure = false;
    return lost;
}

int64_t dt_restart_add_lost(int64_t lost, int64_t more)
{
    if (more <= 0)
        return lost;
    return lost > INT64_MAX - more ? INT64_MAX : lost + more;
}
