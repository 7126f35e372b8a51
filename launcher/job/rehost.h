/* Decides on which hosts the ranks are started again. It avoids hosts that are lost, and hosts in
 * quarantine, on which the job's failures keep beginning. */
#ifndef DT_JOB_REHOST_H
#define DT_JOB_REHOST_H

#include "launcher/job/core/core.h"
#include "launcher/job/network.h"
#include "launcher/job/state/history.h"
#include "launcher/job/state/quarantine.h"

/* Whether the job has moved from a host, and not back yet, and whether the user was told so. */
enum dt_rehost_moved { DT_REHOST_USED, DT_REHOST_MOVED, DT_REHOST_TOLD };

struct dt_rehost {
    struct dt_core *core;
    const struct dt_network *network;
    struct dt_history *history; /* is told which hosts the job leaves out */
    struct dt_quarantine quarantine;
    bool changed;                /* ranks must be placed anew although no host is missing */
    bool *lost;                  /* by host: it is not used any more, unless no others have room */
    enum dt_rehost_moved *moved; /* by host */
    bool *retried;               /* by host: a fresh connection was tried in this recovery */
    bool outage;                 /* in this recovery the job has to wait for lost hosts */
    struct dt_strbuf without;    /* names of hosts that it has moved from since it tried again */
    uint64_t began_ns;           /* when this recovery began */
};

/* network and history must outlive it. */
void dt_rehost_init(struct dt_rehost *r, struct dt_core *core, const struct dt_network *network,
                    struct dt_history *history);
void dt_rehost_free(struct dt_rehost *r);

/* The job recovers from this failure. progress: a newer checkpoint was saved since the previous
 * failure. */
void dt_rehost_begin(struct dt_rehost *r, const struct dt_death *cause, bool progress);
/* Opens one fresh connection in a recovery to each lost host that had ranks. */
void dt_rehost_reconnect(struct dt_rehost *r);
void dt_rehost_lose(struct dt_rehost *r, size_t host); /* the host does not come back */
/* Whether the host is lost only because dtrun does not reach it: after a reboot, or when the
 * network works again, it may. */
bool dt_rehost_may_come_back(const struct dt_rehost *r, size_t host);
/* Whether the host is lost and has not come back, although it may. */
bool dt_rehost_is_away(const struct dt_rehost *r, size_t host);
/* Names those hosts, with the reason why dtrun did not reach them last. */
void dt_rehost_say_away(const struct dt_rehost *r);
void dt_rehost_take_back(struct dt_rehost *r, size_t host); /* it is no longer lost */
/* Returns for how many more seconds at least the host is in quarantine, or 0 if it is not. */
uint64_t dt_rehost_left_out_s(const struct dt_rehost *r, size_t host);
/* Like dt_rehost_lose, but only if the job may continue without this host and its ranks have a
 * place elsewhere. Returns whether that is so. */
bool dt_rehost_spare(struct dt_rehost *r, size_t host);
/* Moves ranks off hosts that are lost or in quarantine. Returns whether all hosts of the plan are
 * connected. Otherwise dtrun connects to some, now or later (DT_TIMER_OUTAGE), or the job ends. */
bool dt_rehost_place(struct dt_rehost *r);
void dt_rehost_try_again(struct dt_rehost *r); /* DT_TIMER_OUTAGE, while the job recovers */
/* Its ranks are placed anew before any of them runs. If the generation that starts has failed or is
 * being ended already, this changes nothing. */
void dt_rehost_begin_anew(struct dt_rehost *r);
/* Some hosts do not reach each other. Leaves hosts out so that a job that has already run can
 * continue. Returns false at the first start, or with --on-host-loss stop: the user has to decide.
 */
bool dt_rehost_leave_out(struct dt_rehost *r);

#endif
