#include "launcher/remote/ssh/sshkey.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/base/mem.h"
#include "launcher/base/slurp.h"
#include "launcher/remote/ssh/base64.h"
#include "launcher/remote/ssh/sshwire.h"

enum { FILE_MAX = 64 * 1024 };

enum dt_sshkey_kind dt_sshkey_kind_of(const char *type)
{
    if (strcmp(type, "ssh-ed25519") == 0)
        return DT_SSHKEY_ED25519;
    if (strcmp(type, "ssh-rsa") == 0)
        return DT_SSHKEY_RSA;
    if (strncmp(type, "ecdsa-sha2-nistp", 16) == 0 && !strchr(type, '@'))
        return DT_SSHKEY_ECDSA;
    return DT_SSHKEY_OTHER;
}

enum dt_sshkey_kind dt_sshkey_kind_of_blob(const struct dt_strbuf *blob)
{
    struct dt_sshget r = { dt_strbuf_text(blob), blob->len, false };
    struct dt_sshget type = dt_sshget_string(&r);
    char name[128];

    if (type.failed || type.n >= sizeof name)
        return DT_SSHKEY_UNKNOWN;
    memcpy(name, type.p, type.n);
    name[type.n] = '\0';
    return dt_sshkey_kind_of(name);
}

/* "openssh-key-v1" NUL, cipher, kdf, kdf options, u32 number of keys, public key, private part */
static void parse_openssh(struct dt_sshkey *key, const char *body, size_t n)
{
    static const char magic[] = "openssh-key-v1";
    struct dt_strbuf raw = { 0 };
    struct dt_sshget r;
    struct dt_sshget cipher;
    struct dt_sshget blob;

    if (dt_base64_decode(&raw, body, n) || raw.len < sizeof magic ||
        memcmp(raw.data, magic, sizeof magic) != 0) {
        dt_strbuf_free(&raw);
        return;
    }
    r = (struct dt_sshget){ raw.data + sizeof magic, raw.len - sizeof magic, false };
    cipher = dt_sshget_string(&r);
    dt_sshget_string(&r);
    dt_sshget_string(&r);
    dt_sshget_u32(&r);
    blob = dt_sshget_string(&r);
    if (!blob.failed) {
        key->encrypted = cipher.n != 4 || memcmp(cipher.p, "none", 4) != 0;
        dt_strbuf_add(&key->blob, blob.p, blob.n);
        key->kind = dt_sshkey_kind_of_blob(&key->blob);
    }
    dt_strbuf_free(&raw);
}

void dt_sshkey_parse(struct dt_sshkey *key, const char *text, size_t n)
{
    static const struct {
        const char *label;
        enum dt_sshkey_kind kind;
        bool encrypted;
    } pems[] = {
        { "RSA PRIVATE KEY-----", DT_SSHKEY_RSA, false },
        { "EC PRIVATE KEY-----", DT_SSHKEY_ECDSA, false },
        { "DSA PRIVATE KEY-----", DT_SSHKEY_OTHER, false },
        { "PRIVATE KEY-----", DT_SSHKEY_OTHER, false },
        { "ENCRYPTED PRIVATE KEY-----", DT_SSHKEY_OTHER, true },
    };
    static const char begin[] = "-----BEGIN ";
    static const char openssh[] = "OPENSSH PRIVATE KEY-----";
    const char *at = n ? memmem(text, n, begin, strlen(begin)) : NULL;
    const char *end;

    key->kind = DT_SSHKEY_UNKNOWN;
    if (!at)
        return;
    at += strlen(begin);
    n -= (size_t)(at - text);
    for (size_t i = 0; i < sizeof pems / sizeof *pems; i++)
        if (n >= strlen(pems[i].label) && memcmp(at, pems[i].label, strlen(pems[i].label)) == 0) {
            key->kind = pems[i].kind;
            key->encrypted = pems[i].encrypted || memmem(at, n, "Proc-Type: 4,ENCRYPTED", 22);
        }
    if (n < strlen(openssh) || memcmp(at, openssh, strlen(openssh)) != 0)
        return;
    at += strlen(openssh); /* skip it, so that its dashes are not taken for those of the end */
    end = memmem(at, n - strlen(openssh), "-----END", 8);
    if (end)
        parse_openssh(key, at, (size_t)(end - at));
}

/* "TYPE BASE64 COMMENT" */
static void parse_public(struct dt_sshkey *key, const char *text)
{
    text += strcspn(text, " ");
    text += strspn(text, " ");
    if (dt_base64_decode(&key->blob, text, strcspn(text, " \r\n")))
        dt_strbuf_free(&key->blob);
}

static void read_public(struct dt_sshkey *key, const char *path)
{
    char *name = dt_xasprintf("%s.pub", path);
    struct dt_strbuf text = { 0 };

    if (dt_slurp(&text, name, FILE_MAX, NULL) == 0)
        parse_public(key, dt_strbuf_text(&text));
    dt_strbuf_free(&text);
    free(name);
}

void dt_sshkey_read(struct dt_sshkey *key, const char *path)
{
    struct dt_strbuf text = { 0 };
    char *cert = dt_xasprintf("%s-cert.pub", path);

    *key = (struct dt_sshkey){ 0 };
    if (dt_slurp(&text, path, FILE_MAX, NULL) == 0) {
        dt_sshkey_parse(key, text.data, text.len);
        if (key->kind == DT_SSHKEY_UNKNOWN)
            parse_public(key, dt_strbuf_text(&text));
    }
    key->certificate = access(cert, F_OK) == 0;
    if (key->blob.len == 0)
        read_public(key, path);
    if (text.data)
        explicit_bzero(text.data, text.len);
    dt_strbuf_free(&text);
    free(cert);
}

void dt_sshkey_free(struct dt_sshkey *key)
{
    dt_strbuf_free(&key->blob);
    *key = (struct dt_sshkey){ 0 };
}
