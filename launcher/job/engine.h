/* The running job, for the files that have no struct of their own yet: job.c (its life, and the
 * table's actions), events.c (where events arrive), launch.c (starting a generation), report.c. A
 * part with a header of its own is given its data and struct dt_core, not this. */
#ifndef DT_JOB_ENGINE_H
#define DT_JOB_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/job/auxiliaries.h"
#include "launcher/job/core.h"
#include "launcher/job/failure.h"
#include "launcher/job/flight_record.h"
#include "launcher/job/hang_detect.h"
#include "launcher/job/job.h"
#include "launcher/job/job_fsm.h"
#include "launcher/job/network.h"
#include "launcher/job/pause.h"
#include "launcher/job/pulse.h"
#include "launcher/job/rank_io.h"
#include "launcher/job/recovery.h"
#include "launcher/job/signals.h"
#include "launcher/job/state/fence.h"
#include "launcher/job/state/injections.h"
#include "launcher/job/state/ranks.h"
#include "launcher/job/state/refusal.h"
#include "launcher/job/state/timers.h"
#include "launcher/job/stopping.h"
#include "launcher/job/stragglers.h"
#include "launcher/place/plan.h"
#include "launcher/place/role.h"
#include "launcher/watch/cause.h"

struct dt_job {
    struct dt_core core; /* the first: an action finds the job by it */
    bool terminal;
    char id[64];
    uint8_t secret[DT_SECRET_BYTES];
    char *checkpoint_dir;
    uint64_t began_ns;
    uint64_t ended_ns;

    struct dt_network network;
    uint16_t rendezvous_port; /* of Horovod, on the first host; 0: ranks need none */
    bool table_sent;
    struct dt_hangs hangs;
    struct dt_failure failure;
    struct dt_last_calls last_calls;

    struct dt_fence fence_of_mpi;

    struct dt_injections injections;

    struct dt_recovery recovery;
    struct dt_pause pause;
    struct dt_signals signals;
    struct dt_pulse pulse;
    struct dt_stragglers stragglers;
    struct dt_auxiliaries auxiliaries;
    struct dt_refusal refusal;

    struct dt_rank_io io;
};

/* launch.c */
void dt_job_launch(struct dt_job *j);
/* The hosts do not reach each other. */
void dt_job_refuse_network(struct dt_job *j);
void dt_job_start_generation(struct dt_job *j);
void dt_job_on_start_timeout(struct dt_job *j);
void dt_job_maybe_go(struct dt_job *j);
void dt_job_on_host_ready(struct dt_job *j, struct dt_hostlink *h, const struct dt_msg_ready *m);
void dt_job_on_started(struct dt_job *j, struct dt_hostlink *h, const struct dt_msg_started *m);
void dt_job_on_spawn_failed(struct dt_job *j, struct dt_hostlink *h,
                            const struct dt_msg_spawn_failed *m);
void dt_job_on_fence(struct dt_job *j, const struct dt_hostlink *h, const struct dt_msg_fence *m);
void dt_job_on_rank_hello(struct dt_job *j, const struct dt_msg_rank_hello *m);

#endif
