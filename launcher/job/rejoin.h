/* Lets hosts that were lost come back. While ranks run without such a host, dtrun now and then
 * opens a connection to it, for which nothing waits. If an agent answers, the host has no ranks
 * until the next restart, which may use it. No rank is restarted only for that. */
#ifndef DT_JOB_REJOIN_H
#define DT_JOB_REJOIN_H

#include "launcher/job/network.h"
#include "launcher/job/rehost.h"
#include "launcher/job/state/comeback.h"

/* What the user was told of a host since the last recovery. */
enum dt_rejoin_told { DT_REJOIN_NOTHING, DT_REJOIN_BACK, DT_REJOIN_LEFT_OUT };

struct dt_rejoin_host {
    struct dt_comeback comeback;
    uint64_t opened_ns; /* the connection that the wait follows: when it was opened */
    enum dt_rejoin_told told;
};

struct dt_rejoin {
    struct dt_core *core;
    struct dt_rehost *rehost;
    const struct dt_network *network;
    struct dt_rejoin_host *hosts;
};

/* rehost and network must outlive it. */
void dt_rejoin_init(struct dt_rejoin *r, struct dt_core *core, struct dt_rehost *rehost,
                    const struct dt_network *network);
void dt_rejoin_free(struct dt_rejoin *r);

/* The ranks run, or a connection to a host without ranks has ended: sees to it that lost hosts are
 * tried when it is time. */
void dt_rejoin_watch(struct dt_rejoin *r);
void dt_rejoin_try(struct dt_rejoin *r); /* DT_TIMER_REJOIN */
/* Its agent said HELLO. If the job cannot use this host, closes the connection and returns false.
 */
bool dt_rejoin_accept(struct dt_rejoin *r, struct dt_hostlink *h);
void dt_rejoin_ready(struct dt_rejoin *r, const struct dt_hostlink *h); /* it has all files */
/* A connection has ended by itself or was given up. was: its phase until then. Call this before
 * anybody else acts on it, because it may be opened again then. */
void dt_rejoin_on_ended(struct dt_rejoin *r, const struct dt_hostlink *h, enum dt_host_phase was);
/* DT_TIMER_START. If hosts that came back are not ready for ranks, leaves them and places the ranks
 * anew. Returns whether there were any. */
bool dt_rejoin_leave_late(struct dt_rejoin *r);
/* A recovery begins, which must not wait for hosts that are being tried. */
void dt_rejoin_put_off(struct dt_rejoin *r);

#endif
