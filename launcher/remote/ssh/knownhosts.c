#include "launcher/remote/ssh/knownhosts.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/base/mem.h"
#include "launcher/remote/ssh/base64.h"
#include "launcher/remote/ssh/knownfile.h"
#include "launcher/remote/ssh/sshkey.h"
#include "launcher/remote/ssh/sshwire.h"
#include "runtime/wire/writeall.h"

/* fnmatch would treat brackets as a set of characters; in known_hosts they surround a name. Only
 * the last star is retried, so that a line full of stars costs no more than another. */
static bool pattern_matches(const char *pattern, const char *end, const char *name)
{
    const char *star = NULL, *resume = NULL;

    while (*name) {
        if (pattern < end && *pattern == '*') {
            star = pattern++;
            resume = name;
        } else if (pattern < end && (*pattern == '?' || tolower((unsigned char)*pattern) ==
                                                            tolower((unsigned char)*name))) {
            pattern++;
            name++;
        } else if (star) {
            pattern = star + 1;
            name = ++resume;
        } else {
            return false;
        }
    }
    while (pattern < end && *pattern == '*')
        pattern++;
    return pattern == end;
}

/* In a list of patterns, a negated one that matches rules the line out. */
static bool names_match(struct dt_knownline *line, const char *name)
{
    const char *names = line->names;
    bool found = false;

    if (*names == '|')
        return dt_knownline_is_hash_of(line, name);
    while (*names) {
        size_t n = strcspn(names, ",");
        bool negated = *names == '!';
        bool matches = pattern_matches(names + negated, names + n, name);

        if (matches && negated)
            return false;
        found |= matches;
        names += n + (names[n] == ',');
    }
    return found;
}

static void note_garbage(struct dt_knownhosts *k, const char *path, unsigned number)
{
    if (!k->garbage && number)
        k->garbage = dt_xasprintf("%s:%u", path, number);
}

/* Returns the name in "[name]:port", or NULL. */
static char *portless_name(const char *name)
{
    const char *end = *name == '[' ? strrchr(name, ']') : NULL;

    return end ? dt_xstrndup(name + 1, (size_t)(end - name - 1)) : NULL;
}

static void take_line(struct dt_knownhosts *k, struct dt_knownline *line, const char *portless,
                      const char *path)
{
    struct dt_strbuf blob = { 0 };
    bool exact = names_match(line, k->name);

    if (!exact && !(portless && names_match(line, portless)))
        return;
    if (line->marker == DT_KNOWNLINE_AUTHORITY) {
        k->authority |= exact;
        return;
    }
    if (dt_base64_decode(&blob, line->key, strlen(line->key)) || blob.len == 0) {
        dt_strbuf_free(&blob);
        note_garbage(k, path, line->number);
        return;
    }
    k->v = dt_xrealloc(k->v, k->n + 1, sizeof *k->v);
    k->v[k->n++] = (struct dt_knownkey){ .type = dt_xstrdup(line->type),
                                         .blob = blob,
                                         .where = dt_xasprintf("%s:%u", path, line->number),
                                         .revoked = line->marker == DT_KNOWNLINE_REVOKED,
                                         .portless = !exact };
}

static void take_file(struct dt_knownhosts *k, const struct dt_knownfile *f)
{
    char *portless = portless_name(k->name);

    for (size_t i = 0; i < f->n; i++)
        take_line(k, &f->v[i], portless, f->path);
    note_garbage(k, f->path, f->garbage);
    free(portless);
}

void dt_knownhosts_take_text(struct dt_knownhosts *k, const char *text, size_t n, const char *file)
{
    struct dt_knownfile f = { 0 };

    dt_knownfile_parse(&f, text, n, file);
    take_file(k, &f);
    dt_knownfile_free(&f);
}

static void load_files(struct dt_knownhosts *k, const struct dt_strs *paths)
{
    for (uint32_t i = 0; i < paths->n; i++)
        take_file(k, dt_knownfile_get(paths->v[i]));
}

void dt_knownhosts_load(struct dt_knownhosts *k, const struct dt_sshconfig *config)
{
    *k = (struct dt_knownhosts){ 0 };
    if (config->hostkeyalias)
        k->name = dt_xstrdup(config->hostkeyalias);
    else if (config->port != 22)
        k->name = dt_xasprintf("[%s]:%d", config->hostname, config->port);
    else
        k->name = dt_xstrdup(config->hostname);
    load_files(k, &config->userknownhosts);
    load_files(k, &config->globalknownhosts);
}

void dt_knownhosts_free(struct dt_knownhosts *k)
{
    for (size_t i = 0; i < k->n; i++) {
        free(k->v[i].type);
        free(k->v[i].where);
        dt_strbuf_free(&k->v[i].blob);
    }
    free(k->v);
    free(k->name);
    free(k->garbage);
    *k = (struct dt_knownhosts){ 0 };
}

static bool knows_type(const struct dt_knownhosts *k, const char *type)
{
    for (size_t i = 0; i < k->n; i++)
        if (!k->v[i].revoked && strcmp(k->v[i].type, type) == 0)
            return true;
    return false;
}

void dt_knownhosts_methods(const struct dt_knownhosts *k, struct dt_strbuf *out)
{
    static const char *const types[][2] = {
        { "ssh-ed25519", "ssh-ed25519" },
        { "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp256" },
        { "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp384" },
        { "ecdsa-sha2-nistp521", "ecdsa-sha2-nistp521" },
        { "ssh-rsa", "rsa-sha2-512,rsa-sha2-256,ssh-rsa" },
    };

    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (knows_type(k, types[i][0]))
            dt_strbuf_printf(out, "%s%s", out->len ? "," : "", types[i][1]);
}

bool dt_knownhosts_needs_openssh(const struct dt_knownhosts *k, bool rsa_works)
{
    bool some = false;

    for (size_t i = 0; i < k->n; i++) {
        enum dt_sshkey_kind kind = dt_sshkey_kind_of(k->v[i].type);

        if (k->v[i].revoked)
            continue;
        some = true;
        if (kind == DT_SSHKEY_ED25519 || kind == DT_SSHKEY_ECDSA ||
            (kind == DT_SSHKEY_RSA && rsa_works))
            return false;
    }
    return some || k->authority;
}

static bool same_blob(const struct dt_strbuf *a, const struct dt_strbuf *b)
{
    return a->len == b->len && memcmp(dt_strbuf_text(a), dt_strbuf_text(b), a->len) == 0;
}

/* Returns the name of the key's type: "ED25519", or the spelling of ssh-keyscan. */
static const char *type_shown(const struct dt_strbuf *blob, bool for_keyscan)
{
    switch (dt_sshkey_kind_of_blob(blob)) {
    case DT_SSHKEY_ED25519:
        return for_keyscan ? "ed25519" : "ED25519";
    case DT_SSHKEY_ECDSA:
        return for_keyscan ? "ecdsa" : "ECDSA";
    case DT_SSHKEY_RSA:
        return for_keyscan ? "rsa" : "RSA";
    default:
        return for_keyscan ? "ed25519" : "key";
    }
}

void dt_knownhosts_keyscan(const struct dt_knownhosts *k, const struct dt_sshconfig *config,
                           const char *type, struct dt_strbuf *out)
{
    dt_strbuf_printf(out, "ssh-keyscan -t %s ", type);
    if (config->port != 22)
        dt_strbuf_printf(out, "-p %d ", config->port);
    dt_strbuf_puts(out, config->hostname);
    if (config->hostkeyalias)
        dt_strbuf_printf(out, " | sed 's/^[^ ]*/%s/'", k->name);
    dt_strbuf_puts(out, " >>");
    dt_sshconfig_quote(out, config->userknownhosts.n ? config->userknownhosts.v[0]
                                                     : "~/.ssh/known_hosts");
}

static void explain_new(const struct dt_knownhosts *k, const struct dt_strbuf *blob,
                        const char *fingerprint, const struct dt_sshconfig *config,
                        struct dt_error *err)
{
    struct dt_strbuf keyscan = { 0 };

    dt_knownhosts_keyscan(k, config, type_shown(blob, true), &keyscan);
    dt_error_set(err,
                 "host key: %s %s is not known; compare it with the host's own, then: %s   (or: "
                 "--ssh-accept-new)",
                 type_shown(blob, false), fingerprint, dt_strbuf_text(&keyscan));
    dt_strbuf_free(&keyscan);
}

enum dt_hostkey_verdict dt_knownhosts_check(const struct dt_knownhosts *k,
                                            const struct dt_strbuf *blob, const char *fingerprint,
                                            const struct dt_sshconfig *config, struct dt_error *err)
{
    const struct dt_knownkey *other = NULL;
    bool known = false;

    for (size_t i = 0; i < k->n; i++) {
        const struct dt_knownkey *key = &k->v[i];

        if (same_blob(&key->blob, blob)) {
            known |= !key->revoked;
            if (!key->revoked)
                continue;
            dt_error_set(err, "host key: %s %s is marked @revoked in %s; do not trust this host",
                         type_shown(blob, false), fingerprint, key->where);
            return DT_HOSTKEY_REFUSED;
        }
        if (!key->revoked && !key->portless)
            other = key;
    }
    if (known)
        return DT_HOSTKEY_KNOWN;
    if (other) {
        dt_error_set(err,
                     "host key: %s %s IS NOT THE ONE KNOWN FOR IT (%s); someone may be listening "
                     "in, or the host was reinstalled; only if you know why: ssh-keygen -R '%s'",
                     type_shown(blob, false), fingerprint, other->where, k->name);
        return DT_HOSTKEY_REFUSED;
    }
    explain_new(k, blob, fingerprint, config, err);
    return DT_HOSTKEY_NEW;
}

static int append_failed(struct dt_error *err, const char *path)
{
    return dt_error_set(err, "host key: it cannot be added to %s: %s; add it with ssh-keyscan",
                        path, strerror(errno));
}

static void make_parent(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *dir = slash ? dt_xstrndup(path, (size_t)(slash - path)) : NULL;

    if (dir)
        mkdir(dir, 0700);
    free(dir);
}

int dt_knownhosts_append(const struct dt_knownhosts *k, const struct dt_strbuf *blob,
                         const struct dt_sshconfig *config, struct dt_error *err)
{
    const char *path = config->userknownhosts.n ? config->userknownhosts.v[0] : "/dev/null";
    struct dt_strbuf line = { 0 };
    struct dt_sshget get = { dt_strbuf_text(blob), blob->len, false };
    struct dt_sshget type = dt_sshget_string(&get);
    char last = '\n';
    int fd;
    int rc = 0;

    make_parent(path);
    fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return append_failed(err, path);
    if (lseek(fd, -1, SEEK_END) >= 0 && read(fd, &last, 1) == 1 && last != '\n')
        dt_strbuf_puts(&line, "\n");
    dt_strbuf_printf(&line, "%s %.*s ", k->name, (int)type.n, type.p);
    dt_base64_encode(&line, blob->data, blob->len, true);
    dt_strbuf_puts(&line, "\n");
    if (dt_write_all(fd, line.data, line.len) < 0)
        rc = append_failed(err, path);
    close(fd);
    dt_strbuf_free(&line);
    return rc;
}
