/* Runs the engine of a job (launcher/job/job.h) in this process: the links to the agents, the event
 * loop with timers and signals, and dtrun's own input and output. */
#ifndef DT_DRIVER_DRIVER_H
#define DT_DRIVER_DRIVER_H

#include "launcher/driver/streams.h"
#include "launcher/job/config.h"
#include "launcher/session/session.h"

struct dt_driver_config { /* everything it points to must outlive dt_driver_run */
    struct dt_job_config job;
    struct dt_access access;
    struct dt_streams_config streams;
    const char *report; /* or NULL */
};

/* Runs the job; returns dtrun's exit code. */
int dt_driver_run(const struct dt_driver_config *config);

#endif
