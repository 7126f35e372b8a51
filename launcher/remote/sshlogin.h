/* All that is known of a host's SSH before connecting: the user's settings, keys and known hosts.
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
    bool rsa_works; /* this libssh2 can do RSA with SHA-2 */
};

/* login is the callee's to free; err->text is empty, or says what is wrong with the settings. */
typedef void (*dt_sshlogin_f)(void *arg, struct dt_sshlogin *login, const struct dt_error *err);

struct dt_sshlogin_query;
/* Asks ssh -G and then the SSH agent. done is called once, from the loop. */
struct dt_sshlogin_query *dt_sshlogin_ask(uv_loop_t *loop, const struct dt_host *host,
                                          dt_sshlogin_f done, void *arg);
void dt_sshlogin_cancel(struct dt_sshlogin_query *q); /* done comes soon */
void dt_sshlogin_free(struct dt_sshlogin *login);     /* and login itself */

#endif
