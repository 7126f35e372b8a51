#include "runtime/wire/auth.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

#include "runtime/wire/codec.h"

static_assert(DT_AUTH_TAG == crypto_auth_BYTES, "the tag fills its field");
static_assert(DT_SECRET_BYTES == crypto_auth_KEYBYTES, "the job's secret is the key");

enum {
    MAGIC = 0x54525444, /* "DTRT" */
    PROTOCOL = 1,       /* of the handshake and of what follows it (ring.c) */
};

static const char LISTENER[8] = "listen";
static const char CONNECTOR[8] = "connect";

static void put_u32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

void dt_auth_hello(const struct dt_auth *a, uint8_t hello[DT_AUTH_HELLO])
{
    memset(hello, 0, DT_AUTH_HELLO);
    put_u32(hello, MAGIC);
    put_u32(hello + 4, PROTOCOL);
    put_u32(hello + 8, a->generation);
    put_u32(hello + 12, a->me);
    put_u32(hello + 16, a->peer);
    put_u32(hello + 20, a->purpose);
    randombytes_buf(hello + 24, DT_AUTH_NONCE);
}

static bool hello_fits(const struct dt_auth *a, const uint8_t *hello)
{
    struct dt_get g = dt_get_init(hello, DT_AUTH_HELLO);
    bool known =
        dt_get_u32(&g) == MAGIC && dt_get_u32(&g) == PROTOCOL && dt_get_u32(&g) == a->generation;
    uint32_t caller = dt_get_u32(&g);

    return known && (a->peer == DT_AUTH_ANYBODY || a->peer == caller) && dt_get_u32(&g) == a->me &&
           dt_get_u32(&g) == a->purpose;
}

/* What both sides put their tags on: the role, the hello with its nonce, the listener's nonce. */
static void transcript(uint8_t out[8 + DT_AUTH_HELLO + DT_AUTH_NONCE], const char role[8],
                       const uint8_t *hello, const uint8_t *nonce)
{
    memcpy(out, role, 8);
    memcpy(out + 8, hello, DT_AUTH_HELLO);
    memcpy(out + 8 + DT_AUTH_HELLO, nonce, DT_AUTH_NONCE);
}

static void sign(const struct dt_auth *a, const char role[8], const uint8_t *hello,
                 const uint8_t *nonce, uint8_t *tag)
{
    uint8_t text[8 + DT_AUTH_HELLO + DT_AUTH_NONCE];

    transcript(text, role, hello, nonce);
    crypto_auth(tag, text, sizeof text, a->secret);
}

static bool verify(const struct dt_auth *a, const char role[8], const uint8_t *hello,
                   const uint8_t *nonce, const uint8_t *tag)
{
    uint8_t text[8 + DT_AUTH_HELLO + DT_AUTH_NONCE];

    transcript(text, role, hello, nonce);
    return crypto_auth_verify(tag, text, sizeof text, a->secret) == 0;
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
