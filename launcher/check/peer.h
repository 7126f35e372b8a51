/* The conversation with one host during a check: connect, send files (--push), ask for facts,
 * compare clocks, let the agent prepare ranks, then send END. */
#ifndef DT_CHECK_PEER_H
#define DT_CHECK_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "launcher/check/host.h"
#include "launcher/job/config.h"
#include "launcher/session/heartbeat.h"
#include "launcher/session/session.h"

struct dt_check_peer;

struct dt_check_plan { /* shared by all conversations; outlives them */
    uv_loop_t *loop;
    const struct dt_job_config *job;
    const struct dt_access *access;
    char id[32]; /* part of the names of the directories of pushed files */
    void (*reached)(void *arg, struct dt_check_peer *peer, struct dt_msg_reach *m);
    void (*progressed)(void *arg); /* after every message, and when a conversation has closed */
    void *arg;
};

struct dt_check_peer {
    const struct dt_check_plan *plan;
    size_t index;               /* index into the job's hosts */
    struct dt_check_host *host; /* the findings */
    struct dt_session *session; /* NULL after it closed */
    struct dt_heartbeat heartbeat;
    char *identity; /* of the machine; NULL until HELLO, like the next three */
    char *addr;
    char *peer_addr;
    struct dt_msg_list netaddrs;
    uint16_t free_port;
    uint16_t probe_port;
    uint64_t opened_ns;
    bool tried;        /* connecting was tried, or will not be tried any more */
    uint64_t asked_ns; /* when CHECK and START were sent, later if dtrun stood still; 0: not yet */
    bool prepared;     /* READY or SPAWN_FAILED arrived */
    unsigned pongs;    /* number of answers to PING */
    bool closing;      /* dtrun is closing it */
};

/* peer is zeroed; host is zeroed except for its name. */
void dt_check_peer_init(struct dt_check_peer *peer, const struct dt_check_plan *plan, size_t index,
                        struct dt_check_host *host);
void dt_check_peer_connect(struct dt_check_peer *peer);
bool dt_check_peer_is_connecting(const struct dt_check_peer *peer); /* HELLO has not arrived */
/* Returns what it waits for, as in "authenticate" or "start the ranks", or NULL if it has nothing
 * left to do. */
const char *dt_check_peer_awaits(const struct dt_check_peer *peer);
bool dt_check_peer_is_open(const struct dt_check_peer *peer); /* and is not being closed */
/* Sends a heartbeat. Call this four times within the time that a host may be silent. */
void dt_check_peer_tick(struct dt_check_peer *peer, uint64_t now_ns, uint64_t last_look_ns);
/* Sends END if the agent listens, otherwise closes the connection. */
void dt_check_peer_end(struct dt_check_peer *peer);
/* Closes at once. problem (or NULL) says why; it is ignored if the host already has one. */
void dt_check_peer_close(struct dt_check_peer *peer, const char *problem);
void dt_check_peer_free(struct dt_check_peer *peer); /* after it has closed */

#endif
