/* Logging in over a libssh2 session: one key is offered after the other, and the SSH agent is asked
 * to sign without anybody waiting for it. */
#ifndef DT_REMOTE_LOGON_H
#define DT_REMOTE_LOGON_H

#include <libssh2.h>
#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "launcher/base/error.h"
#include "launcher/base/strbuf.h"
#include "launcher/remote/ssh/sshagent.h"
#include "launcher/remote/sshsocket.h"
#include "launcher/remote/transport.h"

struct dt_logon {
    uv_loop_t *loop;
    const struct dt_remote *remote;
    size_t key; /* the next to offer */
    struct dt_sshagent_call *agent_call;
    struct dt_strbuf signature;
    const char *agent_why; /* the agent would not sign */
    bool signed_;
    bool closing;
    void (*wake)(void *arg);   /* the agent has answered: the next step can be made */
    void (*closed)(void *arg); /* nothing more will come */
    void *arg;
};

void dt_logon_init(struct dt_logon *l, uv_loop_t *loop, const struct dt_remote *remote,
                   void (*wake)(void *arg), void (*closed)(void *arg), void *arg);

enum dt_logon_verdict {
    DT_LOGON_WAITS,
    DT_LOGON_IN,
    DT_LOGON_REFUSED, /* err tells why */
    DT_LOGON_BROKE,   /* the session did, with its connection */
};

/* As far as it goes now, over a session that has shaken hands. */
enum dt_logon_verdict dt_logon_step(struct dt_logon *l, LIBSSH2_SESSION *session,
                                    const struct dt_sshsocket *socket, struct dt_error *err);

/* closed comes now or soon. */
void dt_logon_close(struct dt_logon *l);

#endif
