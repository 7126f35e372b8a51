/* From the command line to the hosts and the plan, before any connection is made. */
#ifndef DT_CMD_REQUEST_H
#define DT_CMD_REQUEST_H

#include "cmd/options.h"
#include "launcher/hosts/hostlist.h"
#include "launcher/place/plan.h"

/* Fills hosts and plan (both zero-initialised). Prints the warning about more ranks than slots.
 * Without -H and --hostfile it takes the hosts of the batch job, else all ranks run on localhost.
 * On failure both are empty, and the exit code is 2. */
int dt_request_make(const struct dt_options *options, struct dt_hostlist *hosts,
                    struct dt_plan *plan, struct dt_error *err);

/* Returns whether srun reaches this host: it is a node of the Slurm allocation that dtrun runs in,
 * and srun is installed. */
bool dt_request_reached_by_srun(const struct dt_host *host);

#endif
