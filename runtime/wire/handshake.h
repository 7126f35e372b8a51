/* One side of the handshake of auth.h on a non-blocking connection. The caller waits for the
 * descriptor and calls again. Nothing here blocks. */
#ifndef DT_WIRE_HANDSHAKE_H
#define DT_WIRE_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/wire/auth.h"

enum { DT_HANDSHAKE_IDLE_S = 60 }; /* after which the kernel probes whether the peer is there */

enum dt_verdict {
    DT_SHAKE_PENDING, /* wait for the descriptor */
    DT_SHAKE_THROUGH, /* complete */
    DT_SHAKE_UNKNOWN, /* listening side: the hello is for another dt_auth, if any */
    DT_SHAKE_FAILED,  /* see errno; EACCES: the peer could not prove its identity */
};

struct dt_handshake {
    int fd;       /* -1: none; its owner closes it */
    bool sending; /* wait until fd is writable; false: until it is readable */
    int stage;
    size_t at; /* offset in the message of this stage */
    uint8_t hello[DT_AUTH_HELLO];
    uint8_t answer[DT_AUTH_ANSWER];
    uint8_t proof[DT_AUTH_PROOF];
    uint8_t seated; /* the listener's final byte: it has accepted this connection */
};

/* The connecting side: begins, with the descriptor from dt_inet_connect; then proceeds. */
void dt_handshake_call(struct dt_handshake *s, int fd, const struct dt_auth *a);
enum dt_verdict dt_handshake_calling(struct dt_handshake *s, const struct dt_auth *a);

/* The listening side likewise. */
void dt_handshake_host(struct dt_handshake *s, int fd);
enum dt_verdict dt_handshake_hosting(struct dt_handshake *s, const struct dt_auth *a);

/* Whether the TCP connection has been made. */
bool dt_handshake_is_connected(const struct dt_handshake *s);
/* The listening side: whether the peer has not sent its hello yet. */
bool dt_handshake_awaits_hello(const struct dt_handshake *s);

#endif
