/* A client of the SSH agent (ssh-agent, gpg-agent, a forwarded one) that never blocks: libssh2's
 * own would hold up every host while one hardware key waits to be touched. */
#ifndef DT_REMOTE_SSH_SSHAGENT_H
#define DT_REMOTE_SSH_SSHAGENT_H

#include <uv.h>

#include "launcher/remote/ssh/auth.h"

struct dt_sshagent_call;

/* reply: the agent's answer from its type byte on, or NULL with the reason in why (also after a
 * cancel). The call is freed after it. */
typedef void (*dt_sshagent_f)(void *arg, const struct dt_strbuf *reply, const char *why);

/* Sends one request and waits for its reply, over a connection of its own. done is called once,
 * from the loop. timeout_ms 0: the user may be asked for a touch, wait. */
struct dt_sshagent_call *dt_sshagent_ask(uv_loop_t *loop, const char *socket,
                                         const struct dt_strbuf *request, unsigned timeout_ms,
                                         dt_sshagent_f done, void *arg);
void dt_sshagent_cancel(struct dt_sshagent_call *call); /* done comes soon */

/* The two requests in use, and what their replies say. Pure. */
void dt_sshagent_list_request(struct dt_strbuf *request);
int dt_sshagent_list_reply(const struct dt_strbuf *reply, struct dt_auth_keys *keys);
void dt_sshagent_sign_request(struct dt_strbuf *request, const struct dt_strbuf *blob,
                              const void *data, size_t n);
/* Appends the signature without the name of its method. */
int dt_sshagent_sign_reply(const struct dt_strbuf *reply, struct dt_strbuf *signature);

#endif
