/* Logs in over a libssh2 session: offers one key after the other, and waits for the SSH agent's
 * signatures without blocking. */
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
    size_t key; /* the next key to offer */
    struct dt_sshagent_call *agent_call;
    struct dt_strbuf signature;
    const char *agent_why; /* why the agent did not sign */
    bool agent_answered;
    bool closing;
    void (*wake)(void *arg);   /* the agent has answered: call dt_logon_step again */
    void (*closed)(void *arg); /* called once; no event follows */
    void *arg;
};

void dt_logon_init(struct dt_logon *l, uv_loop_t *loop, const struct dt_remote *remote,
                   void (*wake)(void *arg), void (*closed)(void *arg), void *arg);

enum dt_logon_verdict {
    DT_LOGON_WAITS,
    DT_LOGON_IN,
    DT_LOGON_REFUSED, /* err says why */
    DT_LOGON_BROKE,   /* the session broke, together with its connection */
};

/* Proceeds as far as possible without blocking, over a session that has finished its handshake. */
enum dt_logon_verdict dt_logon_step(struct dt_logon *l, LIBSSH2_SESSION *session,
                                    const struct dt_sshsocket *socket, struct dt_error *err);

/* closed follows now or soon. */
void dt_logon_close(struct dt_logon *l);

#endif
