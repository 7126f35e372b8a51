/* What the user asks for: the hosts, the program and the options of a job. Most members are set
 * directly by the table of options (cmd/options.c). */
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
    enum dt_map_by map_by; /* this and the next are used again when ranks move to other hosts */
    bool no_oversubscribe;
    int fanout;          /* the most hosts that connect at once */
    int start_timeout_s; /* for all ranks to be ready to run; 0: no limit */
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
    bool has_checkpoints; /* whether this machine sees checkpoints in checkpoint_dir */
    /* the rank that reads dtrun's standard input, or DT_STDIN_ALL or DT_STDIN_NONE */
    int stdin_rank;
    bool merge_stderr;  /* ranks' standard error goes to standard output */
    bool unbuffered;    /* ranks' standard output is a pseudo-terminal */
    bool output_hidden; /* what ranks write goes to files only */
    int max_restarts;   /* -1: not given */
    enum dt_host_loss on_host_loss;
    char *iface;  /* --iface, accepted by dt_iface_check; or NULL */
    int rejoin_s; /* until a lost host is tried again while ranks run; 0: never */
    int heartbeat_s;
    int kill_grace_s;
    int timeout_s;            /* 0: none */
    int exit_grace_s;         /* 0: only a warning */
    int collective_timeout_s; /* 0: no limit; -1, in the options only: not given */
};

#endif
