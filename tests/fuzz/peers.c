/* What a rank reads from others: the headers of their frames, the handshake of ranks that connect,
 * and packets on its socket to the agent (which reads the packets of ranks in the same way). */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/coll_error.h"
#include "runtime/wire/dataframe.h"
#include "runtime/wire/handshake.h"
#include "runtime/wire/rankmsg.h"
#include "tests/fuzz/fuzz.h"

enum { MOST = 4096 };

/* An accepted header has only one form, and its call can be described to the user. */
static void frame(const uint8_t *data, size_t n)
{
    uint8_t again[DT_DATAFRAME_HEADER];
    char text[DT_CALL_TEXT];
    struct dt_dataframe f;

    if (n < sizeof again || !dt_dataframe_get(&f, data))
        return;
    dt_dataframe_put(&f, again);
    REQUIRE(memcmp(again, data, sizeof again) == 0);
    memset(text, 'x', sizeof text);
    REQUIRE(dt_call_describe(&f.call, text) == text);
    REQUIRE(memchr(text, '\0', sizeof text));
}

static void pair(int type, int s[2])
{
    REQUIRE(socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, s) == 0);
}

/* A peer without the secret never gets through, whether it connects or listens. */
static void shake(const uint8_t *data, size_t n, bool hosting)
{
    const struct dt_auth self = {
        .secret = { 1, 2, 3 }, .generation = 3, .me = 1, .peer = hosting ? DT_AUTH_ANYBODY : 2
    };
    enum dt_verdict v = DT_SHAKE_PENDING;
    struct dt_handshake h = { 0 };
    int s[2];

    pair(SOCK_STREAM, s);
    REQUIRE(send(s[1], data, n, 0) == (ssize_t)n);
    shutdown(s[1], SHUT_WR);
    if (hosting)
        dt_handshake_host(&h, s[0]);
    else
        dt_handshake_call(&h, s[0], &self);
    for (int turn = 0; turn < 10 && v == DT_SHAKE_PENDING; turn++)
        v = hosting ? dt_handshake_hosting(&h, &self) : dt_handshake_calling(&h, &self);
    REQUIRE(v == DT_SHAKE_FAILED || (hosting && v == DT_SHAKE_UNKNOWN));
    close(s[0]);
    close(s[1]);
}

/* An accepted packet has only one form. */
static void packet(const uint8_t *data, size_t n)
{
    uint8_t again[MOST];
    struct dt_rankmsg_from from;
    struct dt_rankmsg msg;
    int s[2], r;

    pair(SOCK_SEQPACKET, s);
    REQUIRE(send(s[1], data, n, 0) == (ssize_t)n);
    r = dt_rankmsg_recv(s[0], &msg, &from, 0);
    REQUIRE(from.fd == -1 && (r == 1 || r == -1 || n == 0));
    if (r == 1) {
        REQUIRE(dt_rankmsg_send(s[0], &msg, -1, 0) == 0);
        REQUIRE(recv(s[1], again, sizeof again, 0) == (ssize_t)n);
        REQUIRE(memcmp(again, data, n) == 0);
    }
    close(s[0]);
    close(s[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    n = n < MOST ? n : MOST;
    frame(data, n);
    shake(data, n, true);
    shake(data, n, false);
    packet(data, n);
    return 0;
}
