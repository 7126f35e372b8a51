/* A client of the SSH agent (ssh-agent, gpg-agent, a forwarded one) that never blocks. libssh2's
 * own client would hold up every host while one hardware key waits for a touch. */
#ifndef DT_REMOTE_SSH_SSHAGENT_H
#define DT_REMOTE_SSH_SSHAGENT_H

#include <uv.h>

#include "launcher/remote/ssh/auth.h"

struct dt_sshagent_call;

/* reply is the agent's answer from its type byte on. After a failure or a cancel it is NULL, with
 * the reason in why. The call is freed after it. */
typedef void (*dt_sshagent_f)(void *arg, const struct dt_strbuf *reply, const char *why);

/* Sends one request and waits for its reply, over its own connection. Calls done once, from the
 * loop. timeout_ms 0 means no limit, because the user may have to touch a key. */
struct dt_sshagent_call *dt_sshagent_ask(uv_loop_t *loop, const char *socket,
                                         const struct dt_strbuf *request, unsigned timeout_ms,
                                         dt_sshagent_f done, void *arg);
void dt_sshagent_cancel(struct dt_sshagent_call *call); /* done follows soon */

/* The two requests that dtrun uses, and the parsing of their replies. Pure. */
void dt_sshagent_list_request(struct dt_strbuf *request);
int dt_sshagent_list_reply(const struct dt_strbuf *reply, struct dt_auth_keys *keys);
void dt_sshagent_sign_request(struct dt_strbuf *request, const struct dt_strbuf *blob,
                              const void *data, size_t n);
/* Appends the signature without the name of its algorithm. */
int dt_sshagent_sign_reply(const struct dt_strbuf *reply, struct dt_strbuf *signature);

#endif
