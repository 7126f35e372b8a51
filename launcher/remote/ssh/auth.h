/* The keys with which to log in to one host, in the order in which they are offered: what the SSH
 * agent holds, then the identity files, each key once. Pure but for reading the files. */
#ifndef DT_REMOTE_SSH_AUTH_H
#define DT_REMOTE_SSH_AUTH_H

#include <stdbool.h>
#include <stddef.h>

#include "launcher/base/error.h"
#include "launcher/base/strbuf.h"
#include "launcher/remote/ssh/sshconfig.h"
#include "launcher/remote/ssh/sshkey.h"

struct dt_auth_key {
    char *name; /* for people: "id_ed25519", "agent: anna@laptop" */
    char *file; /* NULL: the SSH agent signs */
    struct dt_sshkey key;
};

struct dt_auth_keys {
    struct dt_auth_key *v;
    size_t n;
    char *agent_error; /* why the SSH agent could not be asked, or NULL */
};

/* One key of the agent; blob and comment are copied. */
void dt_auth_add_agent_key(struct dt_auth_keys *keys, const struct dt_strbuf *blob,
                           const char *comment);
/* After the agent's: adds the identity files of config that exist. With IdentitiesOnly it takes
 * those agent keys away that no identity file names; else those that one names come first. */
void dt_auth_add_files(struct dt_auth_keys *keys, const struct dt_sshconfig *config);
void dt_auth_free(struct dt_auth_keys *keys);

/* NULL: libssh2 can sign with it; else why not, as "it is encrypted". */
const char *dt_auth_obstacle(const struct dt_auth_key *key, bool rsa_works);

/* Words the failure of a login in which no key was accepted. methods: what the host takes. */
void dt_auth_explain(struct dt_error *err, const struct dt_auth_keys *keys,
                     const struct dt_sshconfig *config, const char *host, const char *methods,
                     bool rsa_works);

#endif
