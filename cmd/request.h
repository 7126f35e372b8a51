/* From what the user typed to the hosts and the plan, before any connection. */
#ifndef DT_CMD_REQUEST_H
#define DT_CMD_REQUEST_H

#include "cmd/options.h"
#include "launcher/hosts/hostlist.h"
#include "launcher/place/plan.h"

/* Fills hosts and plan (both zeroed before); says the warning about more ranks than slots. Without
 * -H and --hostfile the hosts of the batch job are taken, else all ranks run on localhost. On
 * failure both hold nothing, exit code 2. */
int dt_request_make(const struct dt_options *options, struct dt_hostlist *hosts,
                    struct dt_plan *plan, struct dt_error *err);

/* Whether srun reaches this host: it is a node of the Slurm allocation that dtrun runs in, and srun
 * is there. */
bool dt_request_has_srun(const struct dt_host *host);

#endif
