/* Everything known about a host's SSH before connecting: the user's settings, keys and known hosts.
 */
#ifndef DT_REMOTE_SSHLOGIN_H
#define DT_REMOTE_SSHLOGIN_H

#include <uv.h>

#include "launcher/remote/ssh/auth.h"
#include "launcher/remote/ssh/knownhosts.h"
#include "launcher/remote/ssh/sshconfig.h"

struct dt_sshlogin {
    struct dt_sshconfig config;
    struct dt_auth_keys keys;
    struct dt_knownhosts known;
    bool rsa_works; /* this libssh2 supports RSA with SHA-2 */
};

/* The callee frees login. err->text is empty, or says what is wrong with the settings. */
typedef void (*dt_sshlogin_f)(void *arg, struct dt_sshlogin *login, const struct dt_error *err);

struct dt_sshlogin_query;
/* Asks ssh -G and then the SSH agent. Calls done once, from the loop. */
struct dt_sshlogin_query *dt_sshlogin_ask(uv_loop_t *loop, const struct dt_host *host,
                                          dt_sshlogin_f done, void *arg);
void dt_sshlogin_cancel(struct dt_sshlogin_query *q); /* done follows soon */
void dt_sshlogin_free(struct dt_sshlogin *login);     /* frees its contents and login itself */

#endif
