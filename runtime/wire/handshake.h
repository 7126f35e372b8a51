/* One end of the handshake of auth.h on a non-blocking connection. The caller waits for the
 * descriptor and calls again; nothing here blocks. */
#ifndef DT_WIRE_HANDSHAKE_H
#define DT_WIRE_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/wire/auth.h"

enum dt_verdict {
    DT_SHAKE_PENDING,
    DT_SHAKE_THROUGH,
    DT_SHAKE_UNKNOWN, /* listening side: the hello fits another dt_auth, if any */
    DT_SHAKE_FAILED,  /* with errno; EACCES: the other side is not who it should be */
};

struct dt_handshake {
    int fd;       /* -1: none. Not closed here */
    bool sending; /* what to wait for: that fd can be written, or that it can be read */
    int stage;
    size_t at; /* in the message of this stage */
    uint8_t hello[DT_AUTH_HELLO];
    uint8_t answer[DT_AUTH_ANSWER];
    uint8_t proof[DT_AUTH_PROOF];
    uint8_t seated; /* the listener's last word: this connection is the one */
};

/* The connecting side: fd is what dt_inet_connect returned. */
void dt_handshake_call(struct dt_handshake *s, int fd, const struct dt_auth *a);
enum dt_verdict dt_handshake_calling(struct dt_handshake *s, const struct dt_auth *a);

/* The listening side. */
void dt_handshake_host(struct dt_handshake *s, int fd);
enum dt_verdict dt_handshake_hosting(struct dt_handshake *s, const struct dt_auth *a);

/* Whether a connection has been made at all. */
bool dt_handshake_is_connected(const struct dt_handshake *s);
/* The listening side: whether the caller has not said who it is. */
bool dt_handshake_awaits_hello(const struct dt_handshake *s);

#endif
