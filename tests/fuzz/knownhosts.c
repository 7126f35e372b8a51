/* A known_hosts file: the first line is the name that is looked up, the rest is any bytes. */
#include "launcher/remote/ssh/knownhosts.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

static bool has(const struct dt_knownhosts *k, const struct dt_strbuf *blob, bool revoked)
{
    for (size_t i = 0; i < k->n; i++)
        if (k->v[i].revoked == revoked && k->v[i].blob.len == blob->len &&
            memcmp(k->v[i].blob.data, blob->data, blob->len) == 0)
            return true;
    return false;
}

/* The verdict agrees with the lists and is never without a message. */
static void require_verdict(const struct dt_knownhosts *k, const struct dt_strbuf *blob)
{
    struct dt_sshconfig config = { .hostname = k->name, .port = 22 };
    struct dt_error err = { 0 };
    enum dt_hostkey_verdict verdict = dt_knownhosts_check(k, blob, "SHA256:x", &config, &err);
    bool refused = has(k, blob, true), known = !refused && has(k, blob, false);

    REQUIRE(!refused || verdict == DT_HOSTKEY_REFUSED);
    REQUIRE(known == (verdict == DT_HOSTKEY_KNOWN));
    REQUIRE(known || strncmp(err.text, "host key: ", 10) == 0);
}

static void require_all(const struct dt_knownhosts *k)
{
    struct dt_strbuf other = { 0 }, methods = { 0 };

    for (size_t i = 0; i < k->n; i++) {
        REQUIRE(*k->v[i].type && k->v[i].blob.len > 0);
        REQUIRE(strncmp(k->v[i].where, "FILE:", 5) == 0);
        require_verdict(k, &k->v[i].blob);
    }
    dt_strbuf_puts(&other, "in no file");
    require_verdict(k, &other);
    dt_knownhosts_methods(k, &methods);
    REQUIRE(!strpbrk(dt_strbuf_text(&methods), " \n"));
    dt_knownhosts_needs_openssh(k, false);
    dt_strbuf_free(&other);
    dt_strbuf_free(&methods);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const uint8_t *end = n ? memchr(data, '\n', n) : NULL;
    size_t first = end ? (size_t)(end - data) : n;
    struct dt_knownhosts k = { .name = n ? strndup((const char *)data, first) : strdup("") };

    REQUIRE(k.name);
    if (end)
        dt_knownhosts_take_text(&k, (const char *)end + 1, n - first - 1, "FILE");
    require_all(&k);
    dt_knownhosts_free(&k);
    return 0;
}
