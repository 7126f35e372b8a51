#include "runtime/wire/auth.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

#include "runtime/wire/codec.h"

static_assert(DT_AUTH_TAG == crypto_auth_BYTES, "the tag fills its field");
static_assert(DT_SECRET_BYTES == crypto_auth_KEYBYTES, "the job's secret is the key");

enum {
    MAGIC = 0x54525444, /* "DTRT" */
    PROTOCOL = 3,       /* of this handshake and the frames after it (dataframe.h) */
    TAG_AT = DT_AUTH_HELLO - DT_AUTH_TAG,
    NONCE_AT = TAG_AT - DT_AUTH_NONCE,
    TRANSCRIPT_MAX = 8 + DT_AUTH_HELLO + DT_AUTH_NONCE,
};

static const char CALLER[8] = "call";
static const char LISTENER[8] = "listen";
static const char CONNECTOR[8] = "connect";

/* Returns the length of what a tag authenticates: the role, the hello and the listener's nonce; for
 * the hello's own tag (nonce NULL) the role and the hello before the tag. */
static size_t transcript(uint8_t out[TRANSCRIPT_MAX], const char role[8], const uint8_t *hello,
                         const uint8_t *nonce)
{
    size_t bytes = nonce ? DT_AUTH_HELLO : TAG_AT;

    memcpy(out, role, 8);
    memcpy(out + 8, hello, bytes);
    if (nonce)
        memcpy(out + 8 + bytes, nonce, DT_AUTH_NONCE);
    return 8 + bytes + (nonce ? DT_AUTH_NONCE : 0);
}

static void sign(const struct dt_auth *a, const char role[8], const uint8_t *hello,
                 const uint8_t *nonce, uint8_t *tag)
{
    uint8_t text[TRANSCRIPT_MAX];
    size_t bytes = transcript(text, role, hello, nonce);

    crypto_auth(tag, text, bytes, a->secret);
}

static bool verify(const struct dt_auth *a, const char role[8], const uint8_t *hello,
                   const uint8_t *nonce, const uint8_t *tag)
{
    uint8_t text[TRANSCRIPT_MAX];
    size_t bytes = transcript(text, role, hello, nonce);

    return crypto_auth_verify(tag, text, bytes, a->secret) == 0;
}

void dt_auth_hello(const struct dt_auth *a, uint8_t hello[DT_AUTH_HELLO])
{
    struct dt_put p = { .data = hello, .cap = NONCE_AT, .max = NONCE_AT };

    dt_put_u32(&p, MAGIC);
    dt_put_u32(&p, PROTOCOL);
    dt_put_u32(&p, a->generation);
    dt_put_u32(&p, a->me);
    dt_put_u32(&p, a->peer);
    dt_put_u32(&p, a->purpose);
    dt_put_u32(&p, a->connection);
    dt_put_u64(&p, a->comm);
    randombytes_buf(hello + NONCE_AT, DT_AUTH_NONCE);
    sign(a, CALLER, hello, NULL, hello + TAG_AT);
}

/* False: another protocol, or no hello at all. */
static bool read_hello(const uint8_t *hello, struct dt_auth *who)
{
    struct dt_get g = dt_get_init(hello, NONCE_AT);
    bool known = dt_get_u32(&g) == MAGIC && dt_get_u32(&g) == PROTOCOL;

    who->generation = dt_get_u32(&g);
    who->me = dt_get_u32(&g);
    who->peer = dt_get_u32(&g);
    who->purpose = dt_get_u32(&g);
    who->connection = dt_get_u32(&g);
    who->comm = dt_get_u64(&g);
    return known;
}

void dt_auth_caller(const uint8_t hello[DT_AUTH_HELLO], struct dt_auth *who)
{
    *who = (struct dt_auth){ 0 };
    read_hello(hello, who);
}

static bool hello_fits(const struct dt_auth *a, const uint8_t *hello)
{
    struct dt_auth who;

    return read_hello(hello, &who) && who.generation == a->generation && who.peer == a->me &&
           who.purpose == a->purpose &&
           (a->peer == DT_AUTH_ANYBODY ||
            (a->peer == who.me && a->comm == who.comm && a->connection == who.connection)) &&
           (a->purpose == DT_AUTH_AGENTS || verify(a, CALLER, hello, NULL, hello + TAG_AT));
}

bool dt_auth_answer(const struct dt_auth *a, const uint8_t hello[DT_AUTH_HELLO],
                    uint8_t answer[DT_AUTH_ANSWER])
{
    if (!hello_fits(a, hello))
        return false;
    randombytes_buf(answer, DT_AUTH_NONCE);
    sign(a, LISTENER, hello, answer, answer + DT_AUTH_NONCE);
    return true;
}

bool dt_auth_prove(const struct dt_auth *a, const uint8_t hello[DT_AUTH_HELLO],
                   const uint8_t answer[DT_AUTH_ANSWER], uint8_t proof[DT_AUTH_PROOF])
{
    if (!verify(a, LISTENER, hello, answer, answer + DT_AUTH_NONCE))
        return false;
    sign(a, CONNECTOR, hello, answer, proof);
    return true;
}

bool dt_auth_check(const struct dt_auth *a, const uint8_t hello[DT_AUTH_HELLO],
                   const uint8_t answer[DT_AUTH_ANSWER], const uint8_t proof[DT_AUTH_PROOF])
{
    return verify(a, CONNECTOR, hello, answer, proof);
}
