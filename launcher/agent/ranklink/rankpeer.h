/* The conversation between the agent and one of its ranks on the rank's socket.
 *
 * Internal to ranksock. The sockets of all ranks share one struct dt_ranksock. */
#ifndef DT_AGENT_RANKLINK_RANKPEER_H
#define DT_AGENT_RANKLINK_RANKPEER_H

#include "launcher/agent/ranklink/callwatch.h"
#include "launcher/agent/ranklink/commshm.h"
#include "launcher/agent/ranklink/ranksock.h"
#include "launcher/agent/ranklink/ratelimit.h"
#include "launcher/agent/ranklink/segments.h"
#include "runtime/wire/hostshm.h"
#include "runtime/wire/rankmsg.h"

struct dt_rankpeer {
    uv_poll_t poll; /* its data points to this struct */
    struct dt_ranksock *owner;
    uint32_t local_rank;
    int fd;       /* the agent's end, or -1 */
    int child_fd; /* the rank's end until it is forked, or -1 */
    bool linked;  /* it said hello */
    pid_t pid;    /* the process that said hello; others are ignored from then on */
    bool warned;  /* the user was told that something is wrong with it */
    bool sent_last_calls;
    bool paused; /* not read until the launcher has accepted earlier messages */
    struct dt_ratelimit notes, details;
};

struct dt_ranksock {
    const struct dt_msg_start *start;
    struct dt_ranksock_events events;
    void *arg;
    struct dt_hostshm shm;
    int shm_fd;
    struct dt_callwatch watch;
    struct dt_commshm *comms; /* the memory of the other communicators */
    struct dt_segments *segments;
    int table_fd; /* sealed memory file with the encoded table, or -1 */
    uint64_t table_bytes;
    uint32_t reported_limit_ms; /* the lowest limit that the launcher knows; 0: none */
    bool aborted;
    bool failed;               /* a rank has reported why it stopped the host */
    uint32_t open_polls;       /* polls whose close callback has not run yet */
    struct dt_rankpeer *peers; /* by local rank */
};

/* Sends a message. If the rank is gone or its socket is full, drops it: the rank's exit is noticed
 * elsewhere. If the system refuses it for another reason, the rank finds the end of the
 * conversation, since it would wait for the answer for ever. */
void dt_rankpeer_send(struct dt_rankpeer *p, const struct dt_rankmsg *msg, int pass);
void dt_rankpeer_send_table(struct dt_rankpeer *p);
void dt_rankpeer_send_abort(struct dt_rankpeer *p, uint64_t comm, int code, uint32_t culprit);

/* Sends a line to the launcher for the user, a detail only for --verbose. */
void dt_rankpeer_log(const struct dt_ranksock *s, const char *text, bool detail);

/* Reads what the rank has written, and calls the events. */
void dt_rankpeer_drain(struct dt_rankpeer *p);
/* A rank never waits for room in its socket, so the message about its failure may be missing. This
 * reports the failures that are visible in shared memory. */
void dt_rankpeer_report_stopped(struct dt_ranksock *s);

#endif
