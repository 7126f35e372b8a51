/* What a private key file holds, as far as that can be told without its passphrase. */
#ifndef DT_REMOTE_SSH_SSHKEY_H
#define DT_REMOTE_SSH_SSHKEY_H

#include <stdbool.h>
#include <stddef.h>

#include "launcher/base/strbuf.h"

enum dt_sshkey_kind {
    DT_SSHKEY_MISSING, /* no such file, or it cannot be read */
    DT_SSHKEY_UNKNOWN, /* not a private key, or of a format not known here */
    DT_SSHKEY_RSA,
    DT_SSHKEY_ECDSA,
    DT_SSHKEY_ED25519,
    DT_SSHKEY_OTHER, /* in hardware, a certificate, DSA: only OpenSSH may know it */
};

struct dt_sshkey {
    enum dt_sshkey_kind kind;
    bool encrypted;
    bool certificate;      /* FILE-cert.pub stands beside it */
    struct dt_strbuf blob; /* the public key as it goes over the wire; empty: not known */
};

enum dt_sshkey_kind dt_sshkey_kind_of(const char *type); /* of "ssh-ed25519" and so on */
enum dt_sshkey_kind dt_sshkey_kind_of_blob(const struct dt_strbuf *blob);

/* Pure: looks at the text of a file. */
void dt_sshkey_parse(struct dt_sshkey *key, const char *text, size_t n);
/* Reads the file at path, and its public half beside it where the format hides that. */
void dt_sshkey_read(struct dt_sshkey *key, const char *path);
void dt_sshkey_free(struct dt_sshkey *key);

#endif
