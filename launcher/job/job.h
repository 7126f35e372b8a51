/* A job from connecting to its exit code: connect to all hosts, start the ranks, relay their
 * output, decide what a death means, restart or stop, report. */
#ifndef DT_JOB_JOB_H
#define DT_JOB_JOB_H

#include <stdbool.h>

#include "launcher/hosts/hostlist.h"
#include "launcher/io/outfiles.h"
#include "launcher/job/push.h"
#include "launcher/job/restart.h"
#include "launcher/place/bind.h"
#include "launcher/place/gpu.h"
#include "launcher/place/plan.h"
#include "launcher/remote/transport.h"
#include "runtime/wire/codec.h"

struct dt_job_config { /* what it points to must outlive dt_job_run */
    const struct dt_hostlist *hosts;
    const struct dt_plan *plan;
    enum dt_map_by map_by; /* for ranks that are placed anew; as for the next */
    bool no_oversubscribe;
    const struct dt_transport_ops *(*transport)(const struct dt_host *host, void *arg);
    void *transport_arg;
    const char *agent_path;
    bool push_agent;
    bool accept_new;
    struct dt_strs rsh;  /* the words of --rsh, or none */
    int fanout;          /* at most so many hosts are connecting at once */
    int start_timeout_s; /* until all ranks may go; 0: no limit */
    struct dt_strs argv;
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
    bool seen; /* there are checkpoints, as this machine sees checkpoint_dir */
    bool labels;
    bool stamps;
    struct dt_outfiles *files; /* what ranks write goes there; or NULL */
    bool tee;                  /* and to dtrun's standard output and error, too */
    int stdin_rank;            /* who reads dtrun's standard input, or DT_STDIN_ALL, _NONE */
    bool merge_stderr;         /* ranks' standard error goes to standard output */
    int max_restarts;          /* -1: not given */
    enum dt_host_loss on_host_loss;
    const char *iface; /* --iface, accepted by dt_iface_check; or NULL */
    int heartbeat_s;
    int kill_grace_s;
    int timeout_s;            /* 0: none */
    int exit_grace_s;         /* 0: only a warning */
    int collective_timeout_s; /* 0: never */
    const struct dt_push_set *push;
    const char *report; /* or NULL */
};

/* Runs the job; returns dtrun's exit code. */
int dt_job_run(const struct dt_job_config *config);

#endif
