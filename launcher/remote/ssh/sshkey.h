/* What an identity file holds, as far as that is known without its passphrase. */
#ifndef DT_REMOTE_SSH_SSHKEY_H
#define DT_REMOTE_SSH_SSHKEY_H

#include <stdbool.h>
#include <stddef.h>

#include "launcher/base/strbuf.h"

enum dt_sshkey_kind {
    DT_SSHKEY_MISSING, /* no such file, or it cannot be read */
    DT_SSHKEY_UNKNOWN, /* not a private key, or of an unknown format */
    DT_SSHKEY_RSA,
    DT_SSHKEY_ECDSA,
    DT_SSHKEY_ED25519,
    DT_SSHKEY_OTHER, /* in hardware, a certificate, or DSA: only OpenSSH may know it */
};

struct dt_sshkey {
    enum dt_sshkey_kind kind;
    bool encrypted;
    bool certificate;      /* FILE-cert.pub exists */
    struct dt_strbuf blob; /* the public key in its wire format; empty: not known */
};

enum dt_sshkey_kind dt_sshkey_kind_of(const char *type); /* for "ssh-ed25519" and so on */
enum dt_sshkey_kind dt_sshkey_kind_of_blob(const struct dt_strbuf *blob);

/* Parses the text of a file. Pure. */
void dt_sshkey_parse(struct dt_sshkey *key, const char *text, size_t n);
/* Reads the file at path, which may hold only the public half. If it is missing or its format hides
 * the public half, reads that half from the .pub file. */
void dt_sshkey_read(struct dt_sshkey *key, const char *path);
void dt_sshkey_free(struct dt_sshkey *key);

#endif
