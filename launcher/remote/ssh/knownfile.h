/* A known_hosts file, parsed once for all hosts that are looked up in it. It may have lines of any
 * length, markers and hashed names; lines that cannot be parsed are skipped. */
#ifndef DT_REMOTE_SSH_KNOWNFILE_H
#define DT_REMOTE_SSH_KNOWNFILE_H

#include <libssh2.h>
#include <stdbool.h>
#include <stddef.h>

enum dt_knownline_marker { DT_KNOWNLINE_PLAIN, DT_KNOWNLINE_REVOKED, DT_KNOWNLINE_AUTHORITY };

struct dt_knownline {
    enum dt_knownline_marker marker;
    const char *names; /* patterns, or one hashed name */
    const char *type;  /* "ssh-ed25519" */
    const char *key;   /* should be base64; not checked */
    unsigned number;
    LIBSSH2_KNOWNHOSTS *hashed; /* made by the first call of dt_knownline_is_hash_of */
};

struct dt_knownfile {
    char *path;
    char *text; /* the text that the lines point into */
    struct dt_knownline *v;
    size_t n;
    unsigned garbage; /* number of the first line that could not be parsed, or 0 */
};

/* Parses text into f, which is empty. */
void dt_knownfile_parse(struct dt_knownfile *f, const char *text, size_t n, const char *path);
void dt_knownfile_free(struct dt_knownfile *f);

/* Returns the file at path as it is now. Parses it again only if it has changed; a missing file is
 * empty. The result is valid until the next call. */
const struct dt_knownfile *dt_knownfile_get(const char *path);

/* line->names begins with '|'. Returns whether its hash is that of name. */
bool dt_knownline_is_hash_of(struct dt_knownline *line, const char *name);

#endif
