#include "launcher/remote/ssh/auth.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"

static struct dt_auth_key *add_key(struct dt_auth_keys *keys)
{
    keys->v = dt_xrealloc(keys->v, keys->n + 1, sizeof *keys->v);
    keys->v[keys->n] = (struct dt_auth_key){ 0 };
    return &keys->v[keys->n++];
}

static void free_key(struct dt_auth_key *k)
{
    free(k->name);
    free(k->file);
    dt_sshkey_free(&k->key);
}

void dt_auth_add_agent_key(struct dt_auth_keys *keys, const struct dt_strbuf *blob,
                           const char *comment)
{
    struct dt_auth_key *k = add_key(keys);

    k->name = dt_xasprintf("agent: %s", *comment ? comment : "unnamed");
    dt_strbuf_add(&k->key.blob, dt_strbuf_text(blob), blob->len);
    k->key.kind = dt_sshkey_kind_of_blob(blob);
}

/* Returns the index of the key with this public half among the first n, or n. */
static size_t find_key(const struct dt_auth_keys *keys, size_t n, const struct dt_strbuf *blob)
{
    for (size_t i = 0; i < n; i++) {
        const struct dt_strbuf *b = &keys->v[i].key.blob;

        if (b->len && b->len == blob->len && memcmp(b->data, blob->data, b->len) == 0)
            return i;
    }
    return n;
}

/* A host disconnects after a few keys. So agent keys that an identity file names come first, and
 * with IdentitiesOnly the others are left out. */
static void sort_agent_keys(struct dt_auth_keys *keys, size_t n, const bool *named, bool only_named)
{
    struct dt_auth_key *sorted = dt_xcalloc(keys->n, sizeof *sorted);
    size_t kept = 0;

    for (size_t i = 0; i < n; i++)
        if (named[i])
            sorted[kept++] = keys->v[i];
    for (size_t i = 0; i < n; i++) {
        if (!named[i] && only_named)
            free_key(&keys->v[i]);
        else if (!named[i])
            sorted[kept++] = keys->v[i];
    }
    for (size_t i = n; i < keys->n; i++)
        sorted[kept++] = keys->v[i];
    free(keys->v);
    keys->v = sorted;
    keys->n = kept;
}

void dt_auth_add_files(struct dt_auth_keys *keys, const struct dt_sshconfig *config)
{
    size_t agent_keys = keys->n;
    bool *named = dt_xcalloc(agent_keys, sizeof *named);

    for (uint32_t i = 0; i < config->identityfile.n; i++) {
        const char *path = config->identityfile.v[i];
        struct dt_sshkey key;
        size_t at;

        dt_sshkey_read(&key, path);
        at = find_key(keys, keys->n, &key.blob);
        if (at < agent_keys) {
            named[at] = true;
            keys->v[at].key.certificate |= key.certificate;
        }
        if (key.kind == DT_SSHKEY_MISSING || at < keys->n) {
            dt_sshkey_free(&key);
            continue;
        }
        *add_key(keys) = (struct dt_auth_key){ dt_xstrdup(basename(path)), dt_xstrdup(path), key };
    }
    sort_agent_keys(keys, agent_keys, named, config->identitiesonly);
    free(named);
}

void dt_auth_free(struct dt_auth_keys *keys)
{
    for (size_t i = 0; i < keys->n; i++)
        free_key(&keys->v[i]);
    free(keys->v);
    free(keys->agent_error);
    *keys = (struct dt_auth_keys){ 0 };
}

const char *dt_auth_obstacle(const struct dt_auth_key *key, bool rsa_works)
{
    if (key->key.kind == DT_SSHKEY_UNKNOWN)
        return "not a private key that can be read";
    if (key->file && key->key.encrypted)
        return "encrypted: ssh-add it first";
    if (key->key.kind == DT_SSHKEY_RSA && !rsa_works)
        return "RSA, for which this libssh2 is too old: use --transport ssh or an ed25519 key";
    if (!key->file && key->key.kind == DT_SSHKEY_OTHER)
        return "of a type that only ssh can use: --transport ssh";
    return NULL;
}

/* Counts the keys that could be offered: without any, the host had nothing to refuse. */
static size_t count_offered(const struct dt_auth_keys *keys, bool rsa_works)
{
    size_t n = 0;

    for (size_t i = 0; i < keys->n; i++)
        n += dt_auth_obstacle(&keys->v[i], rsa_works) == NULL;
    return n;
}

static void list_keys(struct dt_strbuf *out, const struct dt_auth_keys *keys, bool rsa_works)
{
    for (size_t i = 0; i < keys->n; i++) {
        const char *obstacle = dt_auth_obstacle(&keys->v[i], rsa_works);

        dt_strbuf_printf(out, "%s%s", out->len ? ", " : "", keys->v[i].name);
        if (obstacle)
            dt_strbuf_printf(out, " [%s]", obstacle);
    }
    if (keys->agent_error)
        dt_strbuf_printf(out, "%sno SSH agent: %s", out->len ? ", " : "", keys->agent_error);
}

void dt_auth_explain(struct dt_error *err, const struct dt_auth_keys *keys,
                     const struct dt_sshconfig *config, const struct dt_host *host,
                     const char *methods, bool rsa_works)
{
    struct dt_strbuf list = { 0 }, command = { 0 };
    size_t offered = count_offered(keys, rsa_works);
    const char *text, *copy_id;

    dt_sshconfig_copy_id(host, &command);
    copy_id = dt_strbuf_text(&command);
    list_keys(&list, keys, rsa_works);
    text = dt_strbuf_text(&list);
    if (methods && !strstr(methods, "publickey"))
        dt_error_set(err,
                     "authenticate as %s: the host accepts no keys (it accepts: %s); allow "
                     "PubkeyAuthentication in its sshd_config",
                     config->user, *methods ? methods : "nothing");
    else if (keys->n == 0)
        dt_error_set(err,
                     "authenticate as %s: there is no key to offer (%s); make one with "
                     "ssh-keygen -t ed25519, then: %s",
                     config->user, *text ? text : "no SSH agent, no identity file", copy_id);
    else if (offered == 0)
        dt_error_set(err, "authenticate as %s: none of the keys can be used (%s)", config->user,
                     text);
    else if (offered == 1)
        dt_error_set(err, "authenticate as %s: the key was not accepted (%s); try: %s",
                     config->user, text, copy_id);
    else
        dt_error_set(err, "authenticate as %s: none of the %zu keys was accepted (%s); try: %s",
                     config->user, offered, text, copy_id);
    dt_strbuf_free(&command);
    dt_strbuf_free(&list);
}
