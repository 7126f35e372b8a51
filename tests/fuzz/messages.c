/* The control channel: any bytes as frames, whose payloads are read as messages. */
#include <string.h>

#include "runtime/wire/frame.h"
#include "runtime/wire/msg.h"
#include "tests/fuzz/fuzz.h"

/* An accepted message has only one form: writing it again gives the same bytes. */
static void require_one_form(uint8_t type, const uint8_t *payload, size_t n)
{
    struct dt_put again = { 0 };
    union dt_msg msg;

    if (dt_msg_decode(type, payload, n, &msg) < 0)
        return;
    REQUIRE(dt_msg_name(type));
    dt_msg_encode(&again, type, &msg);
    REQUIRE(!again.failed && again.len == n);
    REQUIRE(n == 0 || memcmp(again.data, payload, n) == 0);
    dt_msg_free(type, &msg);
    dt_put_free(&again);
}

static int hear(void *arg, uint8_t type, const uint8_t *payload, size_t n)
{
    struct dt_put *log = arg;

    REQUIRE(type != 0 && n <= (size_t)DT_MESSAGE_MAX);
    require_one_form(type, payload, n);
    dt_put_u8(log, type);
    dt_put_u64(log, n);
    dt_put_bytes(log, payload, n);
    return 0;
}

/* Feeds data in pieces of at most step bytes. Logs what is received, then the result. */
static void feed(struct dt_put *log, const uint8_t *data, size_t n, size_t step)
{
    struct dt_unframe *u = calloc(1, sizeof *u);
    const char *why = NULL;
    int rc = 0;

    REQUIRE(u);
    for (size_t at = 0; at < n && rc == 0; at += step)
        rc = dt_unframe_feed(u, data + at, n - at < step ? n - at : step, hear, log, &why);
    REQUIRE(rc == 0 || (rc == -1 && why && *why));
    dt_put_u8(log, (uint8_t)rc);
    dt_unframe_free(u);
    free(u);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct dt_put whole = { 0 }, pieces = { 0 };

    feed(&whole, data, n, n ? n : 1);
    feed(&pieces, data, n, n ? data[0] % 23 + 1 : 1);
    REQUIRE(whole.len == pieces.len && memcmp(whole.data, pieces.data, whole.len) == 0);
    for (int type = 0; n && type < 256; type += 1 + data[0] % 7)
        require_one_form((uint8_t)type, data, n);
    dt_put_free(&whole);
    dt_put_free(&pieces);
    return 0;
}
