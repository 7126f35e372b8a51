/* The keys with which to log in to one host, in the order in which they are offered: first those of
 * the SSH agent, then the identity files, each key once. Pure except for reading the files. */
#ifndef DT_REMOTE_SSH_AUTH_H
#define DT_REMOTE_SSH_AUTH_H

#include <stdbool.h>
#include <stddef.h>

#include "launcher/base/error.h"
#include "launcher/base/strbuf.h"
#include "launcher/remote/ssh/sshconfig.h"
#include "launcher/remote/ssh/sshkey.h"

struct dt_auth_key {
    char *name; /* for messages: "id_ed25519", "agent: anna@laptop" */
    char *file; /* NULL: the SSH agent signs */
    struct dt_sshkey key;
};

struct dt_auth_keys {
    struct dt_auth_key *v;
    size_t n;
    char *agent_error; /* why the SSH agent could not be queried, or NULL */
};

/* Adds one key of the agent; copies blob and comment. */
void dt_auth_add_agent_key(struct dt_auth_keys *keys, const struct dt_strbuf *blob,
                           const char *comment);
/* Call this after adding the agent's keys. Adds the identity files of config that exist. With
 * IdentitiesOnly it removes agent keys that no identity file names; otherwise the named ones come
 * first. */
void dt_auth_add_files(struct dt_auth_keys *keys, const struct dt_sshconfig *config);
void dt_auth_free(struct dt_auth_keys *keys);

/* Returns NULL if libssh2 can sign with the key, else why not, as in "encrypted: ssh-add it first".
 */
const char *dt_auth_obstacle(const struct dt_auth_key *key, bool rsa_works);

/* Explains a login in which no key was accepted. methods are those that the host accepts. */
void dt_auth_explain(struct dt_error *err, const struct dt_auth_keys *keys,
                     const struct dt_sshconfig *config, const struct dt_host *host,
                     const char *methods, bool rsa_works);

#endif
