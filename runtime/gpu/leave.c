#include "runtime/gpu/leave.h"

#include <stdio.h>
#include <unistd.h>

#include "runtime/comm/comm.h"

static void tell_why(struct dt_world *w)
{
    char text[DT_RANK_NOTE_TEXT];

    snprintf(
        text, sizeof text,
        "rank %d exits with status %d: the job failed %d s ago, and a thread is still stuck in "
        "NCCL, where no error can reach it",
        w->rank, DT_LEAVE_STATUS, DT_LEAVE_S);
    dt_agentlink_note(&w->agent, text);
}

/* dt_world_stop marks the exit as a consequence if a lost peer or a timeout has stopped the job. */
void dt_leave_job(const struct dt_comm *c)
{
    struct dt_world *w = c->world;
    uint32_t culprit;
    int stopped = dt_hostshm_stopped(&w->shm, &culprit);

    if (!stopped)
        return;
    dt_world_stop(w, 0, &w->shm, (dt_result_t)stopped, culprit, "");
    tell_why(w);
    _exit(DT_LEAVE_STATUS);
}
