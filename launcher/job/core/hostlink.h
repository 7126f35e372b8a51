/* One connection to a host, as the job sees it: its phase, what the agent said about the host, and
 * how far the host's ranks have got. */
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
    DT_HOST_WAITING, /* waits until fewer than --fanout hosts are connecting */
    DT_HOST_CONNECTING,
    DT_HOST_RECEIVING, /* its agent said HELLO; --push files are on their way */
    DT_HOST_IDLE,      /* ready; no ranks there */
    DT_HOST_STARTING,  /* START is sent */
    DT_HOST_RUNNING,   /* STARTED has arrived, DONE has not */
    DT_HOST_CLOSED,    /* or dtrun is closing it */
};

struct dt_hostlinks_shared { /* shared by all connections of a job */
    const struct dt_job_ops *ops;
    int connecting; /* hosts in that phase */
};

struct dt_hostlink {
    struct dt_hostlinks_shared *shared;
    size_t host; /* index into the job's hosts */
    enum dt_host_phase phase;
    bool ending;        /* END was sent */
    bool closing;       /* dtrun is closing it */
    bool injected;      /* a fault of --inject has ended it */
    bool answered;      /* ANSWER to the newest QUERY has arrived */
    bool ready;         /* READY of this generation has arrived */
    bool probing;       /* PROBE was sent, REACH has not arrived */
    bool went;          /* GO of this generation was sent: its ranks may run */
    bool started;       /* STARTED of this generation has arrived */
    bool in_step;       /* the agent runs in a step of a batch system, as HELLO said */
    uint64_t signalled; /* those of the signals being gathered that the agent has reported */
    uint64_t late; /* signals that the job has acted on, but that this agent has not reported yet */
    uint64_t late_ns; /* when the job last acted on one of these */
    char *identity;
    char *addr;
    char *peer_addr;
    uint16_t free_port;
    uint16_t probe_port;
    struct dt_msg_list netaddrs; /* struct dt_msg_netaddr */
    uint64_t opened_ns;
    uint64_t stdin_taken; /* bytes that all its readers have taken in this generation */
    struct dt_heartbeat heartbeat;
    uint64_t pinged_ns; /* when the last PING was sent, or 0 */
    uint64_t sent_ns;   /* when a message was last sent, which may have renewed the agent's lease */
    /* sent_ns of the newest connection that left ranks on the host when it ended; 0: no ranks are
     * left. Ranks that still waited at the gate do not count: they never run the program */
    uint64_t orphans_ns;
    char *dir;           /* the directory with the files of --push; NULL until they are there */
    struct dt_error why; /* why it is CLOSED, or until then, why the one before it was */
    bool told;           /* dtrun closed it, and has told the user why */
    /* dtrun opened it to see whether a lost host is back. Nothing waits for it to open or to close,
     * and until ranks run there, the job can do without the host. */
    bool aside;
    unsigned closing_aside; /* such connections to the host that are closed and have not ended */
};

/* The new connection is WAITING. before is the connection to the host that it replaces, or NULL. */
struct dt_hostlink *dt_hostlink_new(struct dt_hostlinks_shared *shared, size_t host,
                                    const struct dt_hostlink *before);
void dt_hostlink_connect(struct dt_hostlink *h);
void dt_hostlink_send(struct dt_hostlink *h, uint8_t type, const void *msg);
void dt_hostlink_send_frames(struct dt_hostlink *h, uint8_t type, const struct dt_put *frames);
/* Its agent said HELLO. */
void dt_hostlink_greeted(struct dt_hostlink *h, const struct dt_msg_hello *hello);
void dt_hostlink_pushed(struct dt_hostlink *h, const char *dir); /* makes it IDLE */
/* The connection has ended by itself. Returns the phase that it was in. */
enum dt_host_phase dt_hostlink_ended(struct dt_hostlink *h, const char *why);
/* Closes the connection. Stores the reason in h->why. */
void dt_hostlink_close(struct dt_hostlink *h, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Closes a connection that is still being opened. h->why stays what it was. */
void dt_hostlink_put_off(struct dt_hostlink *h);
bool dt_hostlink_is_open(const struct dt_hostlink *h);    /* connecting or connected */
bool dt_hostlink_is_opening(const struct dt_hostlink *h); /* not ready for START yet */
bool dt_hostlink_has_ranks(const struct dt_hostlink *h);
/* The job acts on signals that some agent has reported. */
void dt_hostlink_end_gathering(struct dt_hostlink *h, uint64_t reported, uint64_t now_ns);
/* The agent reports a signal. Returns whether the job has already acted on it. If so, the next
 * report of that signal counts as a new one. */
bool dt_hostlink_take_late(struct dt_hostlink *h, uint64_t signal, uint64_t now_ns);
/* Returns what the host still has to do before it is ready, as in "authenticate". NULL: it is
 * ready, or its ranks run. */
const char *dt_hostlink_awaits(const struct dt_hostlink *h);
const char *dt_hostlink_why(const struct dt_hostlink *h); /* why it is CLOSED, in words */
/* Whether both are CLOSED for the same reason. */
bool dt_hostlink_same_loss(const struct dt_hostlink *a, const struct dt_hostlink *b);
/* Writes "host1: the connection was lost". */
void dt_hostlink_describe_loss(const struct dt_hostlink *h, const char *name,
                               struct dt_strbuf *out);
void dt_hostlink_free(struct dt_hostlink *h); /* accepts NULL */

#endif
