/* A running job. Only job.c (its life and the actions of the table in job_fsm.h) and events.c
 * (where events arrive) know all of it. Every part has its own header. A part's functions take its
 * struct, which holds or points to everything that the part needs. */
#ifndef DT_JOB_ENGINE_H
#define DT_JOB_ENGINE_H

#include "launcher/job/auxiliaries.h"
#include "launcher/job/core/core.h"
#include "launcher/job/failure.h"
#include "launcher/job/hang_detect.h"
#include "launcher/job/job.h"
#include "launcher/job/last_calls.h"
#include "launcher/job/launch.h"
#include "launcher/job/network.h"
#include "launcher/job/pause.h"
#include "launcher/job/pulse.h"
#include "launcher/job/rank_io.h"
#include "launcher/job/recovery.h"
#include "launcher/job/rejoin.h"
#include "launcher/job/signals.h"
#include "launcher/job/state/injections.h"
#include "launcher/job/stragglers.h"

struct dt_job {
    struct dt_core core; /* must be first: job.c gets the job by casting a pointer to core */
    bool terminal;       /* a person reads dtrun's messages as they appear */
    char id[64];
    uint8_t secret[DT_SECRET_BYTES];
    char *checkpoint_dir;
    uint64_t began_ns;
    uint64_t ended_ns;

    struct dt_injections injections;
    struct dt_network network;
    struct dt_launch launch;
    struct dt_rank_io io;
    struct dt_pulse pulse;
    struct dt_hang_detect hang_detect;
    struct dt_stragglers stragglers;
    struct dt_auxiliaries auxiliaries;
    struct dt_last_calls last_calls;
    struct dt_failure failure;
    struct dt_recovery recovery;
    struct dt_rejoin rejoin;
    struct dt_pause pause;
    struct dt_signals signals;
};

#endif
