/* What known_hosts files say about one host, interpreted as OpenSSH does: patterns, hashed names,
 * keys of a name without its port, @revoked. */
#ifndef DT_REMOTE_SSH_KNOWNHOSTS_H
#define DT_REMOTE_SSH_KNOWNHOSTS_H

#include <stdbool.h>
#include <stddef.h>

#include "launcher/base/error.h"
#include "launcher/base/strbuf.h"
#include "launcher/remote/ssh/sshconfig.h"

struct dt_knownkey {
    char *type; /* "ssh-ed25519" */
    struct dt_strbuf blob;
    char *where; /* "FILE:LINE" */
    bool revoked;
    /* listed for the name without its port: such a key can confirm the host, but a different key
     * does not contradict it */
    bool portless;
};

struct dt_knownhosts { /* what the files say about one host */
    char *name;        /* as known_hosts spells it: "host3", "[host3]:2222" */
    struct dt_knownkey *v;
    size_t n;
    bool authority; /* an @cert-authority line matches, which only OpenSSH can check */
    char *garbage;  /* FILE:LINE of the first line that could not be parsed, or NULL */
};

/* Looks up the host of config in all its files. */
void dt_knownhosts_load(struct dt_knownhosts *k, const struct dt_sshconfig *config);
/* Adds the lines of a file, given as text. k->name is set. Pure. */
void dt_knownhosts_take_text(struct dt_knownhosts *k, const char *text, size_t n, const char *file);
void dt_knownhosts_free(struct dt_knownhosts *k);

/* Writes the types of the known keys for LIBSSH2_METHOD_HOSTKEY, or "" if none is known. */
void dt_knownhosts_methods(const struct dt_knownhosts *k, struct dt_strbuf *out);
/* Returns whether there are known keys and this libssh2 can verify none of them. */
bool dt_knownhosts_needs_openssh(const struct dt_knownhosts *k, bool rsa_works);

enum dt_hostkey_verdict { DT_HOSTKEY_KNOWN, DT_HOSTKEY_NEW, DT_HOSTKEY_REFUSED };

/* Judges the key that the host presented. REFUSED: err says why (changed, revoked). NEW: nothing is
 * known about the host; err holds the message for users who do not accept that. */
enum dt_hostkey_verdict dt_knownhosts_check(const struct dt_knownhosts *k,
                                            const struct dt_strbuf *blob, const char *fingerprint,
                                            const struct dt_sshconfig *config,
                                            struct dt_error *err);

/* Writes the command that adds the host's key of a type, spelled as for ssh-keyscan. */
void dt_knownhosts_keyscan(const struct dt_knownhosts *k, const struct dt_sshconfig *config,
                           const char *type, struct dt_strbuf *out);

/* Appends one line to the user's first file, in one write. */
int dt_knownhosts_append(const struct dt_knownhosts *k, const struct dt_strbuf *blob,
                         const struct dt_sshconfig *config, struct dt_error *err);

#endif
