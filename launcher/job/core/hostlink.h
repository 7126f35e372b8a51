/* One host as the job sees it for as long as one connection lasts: how far that is, what the agent
 * said of itself, and how far its ranks are. */
#ifndef DT_JOB_CORE_HOSTLINK_H
#define DT_JOB_CORE_HOSTLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/base/error.h"
#include "launcher/base/strbuf.h"
#include "launcher/job/ops.h"
#include "launcher/session/heartbeat.h"
#include "runtime/wire/msg.h"

enum dt_host_phase {
    DT_HOST_WAITING, /* until fewer than --fanout hosts are connecting */
    DT_HOST_CONNECTING,
    DT_HOST_RECEIVING, /* its agent said HELLO; --push files are on their way */
    DT_HOST_IDLE,      /* ready; no ranks there */
    DT_HOST_STARTING,  /* START is sent */
    DT_HOST_RUNNING,   /* STARTED came, DONE did not */
    DT_HOST_CLOSED,    /* or being closed by us */
};

struct dt_hostlinks_shared { /* by all of a job */
    const struct dt_job_ops *ops;
    int connecting; /* hosts in that phase */
};

struct dt_hostlink {
    struct dt_hostlinks_shared *shared;
    size_t host; /* index into the job's hosts */
    enum dt_host_phase phase;
    bool open; /* connecting or connected; neither has ended nor been closed */
    bool greeted;
    bool ending;        /* END is sent, or it is being closed: its end is expected */
    bool closing;       /* by us */
    bool injected;      /* a fault of --inject has ended it */
    bool answered;      /* ANSWER to the newest QUERY */
    bool ready;         /* READY of this generation */
    bool probing;       /* PROBE is sent, REACH has not come */
    bool went;          /* GO of this generation is sent: its ranks may run */
    bool started;       /* STARTED of this generation */
    bool in_step;       /* as its HELLO said */
    uint64_t signalled; /* those of the signals gathered now that the agent has reported */
    uint64_t late; /* those that the job has acted upon, and that only other agents have reported */
    uint64_t late_ns; /* when it acted upon the last of these */
    char *identity;
    char *addr;
    char *peer_addr;
    uint16_t free_port;
    uint16_t probe_port;
    struct dt_msg_list netaddrs; /* struct dt_msg_netaddr */
    uint64_t opened_ns;
    uint64_t stdin_taken; /* by all its ranks that read it, in this generation */
    struct dt_heartbeat heartbeat;
    uint64_t pinged_ns;  /* or 0 */
    uint64_t sent_ns;    /* anything: when the agent's lease can have been renewed last */
    uint64_t orphans_ns; /* the same for ranks that this connection or an earlier one to the host
                          * has left there when it ended; 0: none are left. Ranks that still wait
                          * at the gate do not count: without GO they never run the program */
    char *dir;           /* of the files that --push has put there; NULL until they are */
    struct dt_error why; /* when closed */
};

/* WAITING. before: the connection to the host that it takes the place of, or NULL. */
struct dt_hostlink *dt_hostlink_new(struct dt_hostlinks_shared *shared, size_t host,
                                    const struct dt_hostlink *before);
void dt_hostlink_connect(struct dt_hostlink *h);
void dt_hostlink_send(struct dt_hostlink *h, uint8_t type, const void *msg);
void dt_hostlink_send_frames(struct dt_hostlink *h, uint8_t type, const struct dt_put *frames);
/* Its agent said HELLO. */
void dt_hostlink_greeted(struct dt_hostlink *h, const struct dt_msg_hello *hello);
void dt_hostlink_received(struct dt_hostlink *h, const char *dir); /* it is IDLE now */
/* The connection has ended by itself. Returns the phase until then. */
enum dt_host_phase dt_hostlink_ended(struct dt_hostlink *h, const char *why);
/* Ends the connection for the reason given, which is kept as h->why. */
void dt_hostlink_close(struct dt_hostlink *h, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
bool dt_hostlink_is_opening(const struct dt_hostlink *h); /* not ready for START yet */
bool dt_hostlink_has_ranks(const struct dt_hostlink *h);
/* The job acts upon the signals that were gathered. reported: those of them that some agent has
 * reported. */
void dt_hostlink_end_gathering(struct dt_hostlink *h, uint64_t reported, uint64_t now_ns);
/* The agent reports a signal. Returns whether the job has acted upon that one already, which counts
 * for one report. */
bool dt_hostlink_take_late(struct dt_hostlink *h, uint64_t signal, uint64_t now_ns);
/* What keeps the host from being ready, as "authenticate"; NULL: it is, or its ranks run. */
const char *dt_hostlink_awaits(const struct dt_hostlink *h);
/* "host1: the connection was lost" */
void dt_hostlink_describe_loss(const struct dt_hostlink *h, const char *name,
                               struct dt_strbuf *out);
void dt_hostlink_free(struct dt_hostlink *h); /* accepts NULL */

#endif
