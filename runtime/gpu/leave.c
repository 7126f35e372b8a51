#include "runtime/gpu/leave.h"

#include <stdio.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/comm/comm.h"

enum { PATIENCE_S = 3 };

static void tell_why(struct dt_world *w, uint64_t stuck_ns)
{
    char text[DT_RANK_NOTE_TEXT];

    snprintf(
        text, sizeof text,
        "rank %d exits with status %d: the job failed %.1f s ago, and a thread is still stuck in "
        "NCCL, where no error can reach it",
        w->rank, DT_LEAVE_STATUS, (double)stuck_ns / 1e9);
    dt_agentlink_note(&w->agent, text);
}

static bool is_due(const struct dt_world *w, uint64_t stuck_ns)
{
    uint64_t leave_by = atomic_load(&w->shm.head->leave_by_ns);

    return stuck_ns > (uint64_t)PATIENCE_S * 1000000000 ||
           (leave_by && dt_clock_read(CLOCK_BOOTTIME) >= leave_by);
}

/* dt_world_stop marks the exit as a consequence if a lost peer or a timeout has stopped the job. */
void dt_leave_if_due(const struct dt_comm *c, uint64_t stuck_ns)
{
    struct dt_world *w = c->world;
    uint32_t culprit;
    int stopped = dt_hostshm_stopped(&w->shm, &culprit);

    if (!stopped || !is_due(w, stuck_ns))
        return;
    dt_world_stop(w, 0, &w->shm, (dt_result_t)stopped, culprit, "");
    tell_why(w, stuck_ns);
    _exit(DT_LEAVE_STATUS);
}
