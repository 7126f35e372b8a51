/* Which program carries an SSH connection: libssh2 in this process, or OpenSSH's ssh. Pure. */
#ifndef DT_REMOTE_CHOOSE_H
#define DT_REMOTE_CHOOSE_H

#include <stdbool.h>

#include "launcher/remote/ssh/auth.h"
#include "launcher/remote/ssh/knownhosts.h"
#include "launcher/remote/ssh/sshconfig.h"

/* NULL: libssh2 can do all that the settings and the keys demand. Else the reason why it cannot, as
 * "ProxyJump is set". Whether a key will be accepted is known only to the host: so one key that
 * only ssh can use is enough for ssh. */
const char *dt_choose_openssh(const struct dt_sshconfig *config, const struct dt_auth_keys *keys,
                              const struct dt_knownhosts *known, bool rsa_works);

#endif
