/* The request that a job is run for, as the user gave it. Most members are set directly by the
 * table of options (cmd/options.c). */
#ifndef DT_JOB_CONFIG_H
#define DT_JOB_CONFIG_H

#include <stdbool.h>

#include "launcher/hosts/hostlist.h"
#include "launcher/job/state/restart.h"
#include "launcher/place/bind.h"
#include "launcher/place/gpu.h"
#include "launcher/place/plan.h"
#include "runtime/wire/codec.h"

struct dt_job_config { /* what it points to must outlive the job */
    const struct dt_hostlist *hosts;
    const struct dt_plan *plan;
    enum dt_map_by map_by; /* for ranks that are placed anew; as for the next */
    bool no_oversubscribe;
    int fanout;          /* at most so many hosts are connecting at once */
    int start_timeout_s; /* until all ranks may go; 0: no limit */
    struct dt_strs argv; /* the program and its arguments */
    struct dt_strs env;
    struct dt_strs unset;
    unsigned frameworks; /* set of enum dt_framework */
    enum dt_gpu_bind gpu_bind;
    enum dt_bind_to bind_to;
    bool report_bindings;
    bool virtual_local_rank;
    struct dt_strs inject; /* each was accepted by dt_inject_parse */
    const char *wdir;
    const char *checkpoint_dir; /* absolute, or NULL: checkpoints/JOB in wdir */
    bool fresh;
    bool resume;
    bool has_checkpoints; /* checkpoint_dir, as this machine sees it */
    int stdin_rank;       /* who reads dtrun's standard input, or DT_STDIN_ALL, _NONE */
    bool merge_stderr;    /* ranks' standard error goes to standard output */
    int max_restarts;     /* -1: not given */
    enum dt_host_loss on_host_loss;
    char *iface; /* --iface, accepted by dt_iface_check; or NULL */
    int heartbeat_s;
    int kill_grace_s;
    int timeout_s;            /* 0: none */
    int exit_grace_s;         /* 0: only a warning */
    int collective_timeout_s; /* 0: never; as an option also -1: not given */
};

#endif
