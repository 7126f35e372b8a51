/* The connections of a job: one to each host that it uses or has used. */
#ifndef DT_JOB_CORE_HOSTLINKS_H
#define DT_JOB_CORE_HOSTLINKS_H

#include "launcher/hosts/hostlist.h"
#include "launcher/job/core/hostlink.h"

struct dt_hostlinks {
    struct dt_hostlinks_shared shared;
    const struct dt_hostlist *hosts;
    int fanout;             /* connections that may be opened at once */
    struct dt_hostlink **v; /* by host; NULL: never opened */
    unsigned open;          /* connections that have not ended, even if they are being closed */
    uint32_t query;         /* number of the newest QUERY */
};

void dt_hostlinks_init(struct dt_hostlinks *l, const struct dt_hostlist *hosts, int fanout,
                       const struct dt_job_ops *ops);
void dt_hostlinks_free(struct dt_hostlinks *l);

/* Opens a fresh connection to the host as soon as --fanout leaves room for it. */
void dt_hostlinks_open(struct dt_hostlinks *l, size_t host);
/* Likewise, but nothing waits for this connection (aside, in hostlink.h). */
void dt_hostlinks_open_aside(struct dt_hostlinks *l, size_t host);
/* Connects as many of the waiting hosts as --fanout leaves room for, in order. */
void dt_hostlinks_connect_next(struct dt_hostlinks *l);
void dt_hostlinks_on_ended(struct dt_hostlinks *l); /* a connection has ended by itself */
/* A connection to the host that was closed has ended. */
void dt_hostlinks_on_hung_up(struct dt_hostlinks *l, size_t host);

/* Sends a message to all hosts that have ranks. */
void dt_hostlinks_send_all(const struct dt_hostlinks *l, uint8_t type, const void *msg);
/* Sends END to every host that listens. */
void dt_hostlinks_end_all(const struct dt_hostlinks *l);
/* Closes the connections that are not ready for START yet. */
void dt_hostlinks_close_opening(const struct dt_hostlinks *l);
void dt_hostlinks_close_all(const struct dt_hostlinks *l);

/* Returns whether no connection is being opened and no host has ranks. This and the next function
 * ignore connections that are aside. */
bool dt_hostlinks_are_idle(const struct dt_hostlinks *l);
bool dt_hostlinks_any_closing(const struct dt_hostlinks *l);

/* Returns whether some step of a batch system has not yet reported all of these signals. */
bool dt_hostlinks_await_signals(const struct dt_hostlinks *l, uint64_t signals);
/* Calls dt_hostlink_end_gathering for each connection. */
void dt_hostlinks_end_gathering(const struct dt_hostlinks *l, uint64_t reported, uint64_t now_ns);

/* Sends a new QUERY to all hosts that have ranks. */
void dt_hostlinks_query(struct dt_hostlinks *l);
/* ANSWER has arrived. Returns whether it answers the newest QUERY. */
bool dt_hostlinks_answer(const struct dt_hostlinks *l, struct dt_hostlink *h, uint32_t query);
/* Returns whether all hosts that have ranks have answered the newest QUERY. */
bool dt_hostlinks_have_answered(const struct dt_hostlinks *l);

#endif
