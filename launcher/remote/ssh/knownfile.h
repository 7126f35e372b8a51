/* A known_hosts file, parsed once for all hosts that are looked up in it: lines of any length,
 * markers, hashed names, and lines that mean nothing, which are skipped. */
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
    const char *key;   /* base64, as far as anybody knows */
    unsigned number;
    LIBSSH2_KNOWNHOSTS *hashed; /* made by the first dt_knownline_hashes */
};

struct dt_knownfile {
    char *path;
    char *text; /* to which the lines point */
    struct dt_knownline *v;
    size_t n;
    unsigned garbage; /* the number of the first line that could not be read, or 0 */
};

/* Fills f, which is empty. */
void dt_knownfile_parse(struct dt_knownfile *f, const char *text, size_t n, const char *path);
void dt_knownfile_free(struct dt_knownfile *f);

/* The file at path as it is now, parsed again only if it has changed; empty if it does not exist.
 * It is valid until the next call. */
const struct dt_knownfile *dt_knownfile_get(const char *path);

/* line->names begins with '|': is name the one whose hash stands there? */
bool dt_knownline_hashes(struct dt_knownline *line, const char *name);

#endif
