/* Decides what carries an SSH connection: libssh2 in this process, or OpenSSH's ssh. Pure. */
#ifndef DT_REMOTE_CHOOSE_H
#define DT_REMOTE_CHOOSE_H

#include <stdbool.h>

#include "launcher/remote/ssh/auth.h"
#include "launcher/remote/ssh/knownhosts.h"
#include "launcher/remote/ssh/sshconfig.h"

/* Returns NULL if libssh2 can do everything that the settings and the keys demand, else the reason
 * why it cannot, as in "ProxyJump is set". Only the host knows which key it accepts, so a single
 * key that only ssh can use decides for ssh. */
const char *dt_choose_openssh(const struct dt_sshconfig *config, const struct dt_auth_keys *keys,
                              const struct dt_knownhosts *known, bool rsa_works);

#endif
