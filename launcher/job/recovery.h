/* Starts all ranks again after a failure, from the newest checkpoint. Kills the ranks that are left
 * and opens a fresh connection to each lost host. Then waits for the fence: nothing starts while a
 * rank of the previous generation may be alive on a lost host. */
#ifndef DT_JOB_RECOVERY_H
#define DT_JOB_RECOVERY_H

#include "launcher/job/core/core.h"
#include "launcher/job/network.h"
#include "launcher/job/rehost.h"
#include "launcher/job/state/history.h"
#include "launcher/job/state/restart.h"

struct dt_recovery {
    struct dt_core *core;
    struct dt_network *network;
    const char *checkpoint_dir;
    struct dt_restart restart;
    struct dt_history history;
    struct dt_rehost rehost;
    uint64_t fence_ns; /* no rank is started before this time */
    uint32_t grace_ms; /* how long ranks may take to end, after SIGTERM; 0: they are killed */
};

/* network and checkpoint_dir must outlive it. */
void dt_recovery_init(struct dt_recovery *r, struct dt_core *core, struct dt_network *network,
                      const char *checkpoint_dir);
void dt_recovery_free(struct dt_recovery *r);

/* The job will recover from a failure: says so and records it. text describes cause, which was
 * noticed at failed_ns. */
void dt_recovery_plan(struct dt_recovery *r, const struct dt_death *cause, const char *text,
                      uint64_t failed_ns);
/* The host is shutting down: its agent was sent this signal. If the job may be restarted on other
 * hosts, does that, after the ranks have had time to save. Returns false if the signal has to stop
 * the job instead. */
bool dt_recovery_leave_host(struct dt_recovery *r, size_t host, int signo);
/* The host cannot start ranks again. If that is because killed processes are stuck inside its
 * kernel, or it has just come back to the job, and the ranks have a place elsewhere, they start
 * there. Returns false if the host is needed. */
bool dt_recovery_leave_refusing(struct dt_recovery *r, size_t host,
                                const struct dt_msg_spawn_failed *why);
void dt_recovery_begin(struct dt_recovery *r);    /* DT_ACT_RECOVER */
void dt_recovery_relaunch(struct dt_recovery *r); /* DT_ACT_RELAUNCH */
/* The connection to this host was lost while it had ranks. Moves the fence to the time by which
 * these have certainly ended. */
void dt_recovery_fence(struct dt_recovery *r, const struct dt_hostlink *h);
/* The job continues. If restored_known is set, it does so from the checkpoint of step restored, or
 * from the beginning if that is -1. */
void dt_recovery_complete(struct dt_recovery *r, bool restored_known, int64_t restored);
void dt_recovery_on_commit(struct dt_recovery *r, const struct dt_msg_commit *m);

#endif
