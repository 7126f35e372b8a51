/* Which hosts the ranks are placed on when they are started again: not on hosts that are lost, nor
 * on those in quarantine, because the job's failures keep beginning there. */
#ifndef DT_JOB_REHOST_H
#define DT_JOB_REHOST_H

#include "launcher/job/core/core.h"
#include "launcher/job/network.h"
#include "launcher/job/state/history.h"
#include "launcher/job/state/quarantine.h"

struct dt_rehost {
    struct dt_core *core;
    const struct dt_network *network;
    struct dt_history *history; /* is told which hosts the job does without */
    struct dt_quarantine quarantine;
    bool quarantine_changed; /* ranks are to be placed anew although no host is missing */
    bool *lost;              /* by host: not to be used any more */
    bool *retried;           /* by host: a fresh connection was tried in this recovery */
};

/* network and history must outlive it. */
void dt_rehost_init(struct dt_rehost *r, struct dt_core *core, const struct dt_network *network,
                    struct dt_history *history);
void dt_rehost_free(struct dt_rehost *r);

/* The job recovers from this failure. progress: a newer checkpoint was saved since the one before.
 */
void dt_rehost_begin(struct dt_rehost *r, const struct dt_death *cause, bool progress);
/* Each host that the ranks were lost with gets one fresh connection in a recovery. */
void dt_rehost_reconnect(struct dt_rehost *r);
void dt_rehost_lose(struct dt_rehost *r, size_t host); /* it does not come back */
/* Places the ranks anew where hosts are lost or in quarantine. Returns whether all hosts of the
 * plan are connected; otherwise connections are being made, or the job ends. */
bool dt_rehost_place(struct dt_rehost *r);
/* Some hosts do not reach each other. A job that has run goes on as it can, without those. At the
 * first start returns false: the user has to decide what was meant. */
bool dt_rehost_leave_out(struct dt_rehost *r);

#endif
