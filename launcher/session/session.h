/* The conversation with one host for the life of one connection: a link to its agent, and the files
 * of --push that it receives first. Both a job and a check use it. */
#ifndef DT_SESSION_SESSION_H
#define DT_SESSION_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "launcher/base/error.h"
#include "launcher/remote/transport.h"
#include "launcher/session/push.h"
#include "runtime/wire/msg.h"

struct dt_access { /* how hosts are reached, and what each receives; outlives the sessions */
    const struct dt_transport_ops *(*transport)(const struct dt_host *host, void *arg);
    void *transport_arg;
    const char *agent_path;
    bool push_agent;
    bool accept_new;
    struct dt_strs rsh; /* the words of --rsh, or none */
    const struct dt_push_set *push;
};

struct dt_session_events {
    void (*greeted)(void *arg, const struct dt_msg_hello *hello);
    /* The host has every file of --push in this directory ("": nothing is pushed). Follows greeted,
     * at once if nothing is pushed. */
    void (*pushed)(void *arg, const char *dir);
    /* Any message after HELLO. msg is freed after the call. */
    void (*message)(void *arg, uint8_t type, union dt_msg *msg);
    void (*noise)(void *arg, const char *line); /* as in dt_link_events */
    /* Called exactly once, as the last event; then the session is freed. why->text is empty if the
     * agent ended normally, or if dt_session_close was called, after which this is the only event.
     */
    void (*closed)(void *arg, const struct dt_error *why);
};

struct dt_session;

/* alone: the job has no other host. job_id: part of the name of the directory of pushed files. */
struct dt_session *dt_session_open(uv_loop_t *loop, const struct dt_access *access,
                                   const struct dt_host *host, bool alone, const char *job_id,
                                   const struct dt_session_events *events, void *arg);
void dt_session_send(struct dt_session *s, uint8_t type, const void *msg);
/* Sends a message that dt_msg_frame has encoded once for many hosts. */
void dt_session_send_frames(struct dt_session *s, uint8_t type, const struct dt_put *frames);
const char *dt_session_phase(const struct dt_session *s);   /* as dt_link_phase */
const char *dt_session_carrier(const struct dt_session *s); /* as dt_link_carrier */
bool dt_session_sent_agent(const struct dt_session *s);     /* as dt_link_sent_agent */
void dt_session_close(struct dt_session *s);                /* ends it now */

#endif
