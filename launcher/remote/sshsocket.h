/* The TCP connection beneath a libssh2 session.
 *
 * libssh2 does not touch it. Received bytes go to `in`, from which libssh2's RECV callback takes
 * them. The SEND callback appends whole packets to `wire` and always succeeds. (If a connection
 * takes only part of a packet, libssh2 1.10 fails in two ways: it loses a window adjustment that
 * must wait, and it cannot read while a write is half done.) `wire` stays bounded because the owner
 * gives libssh2 no application data while much of it waits. */
#ifndef DT_REMOTE_SSHSOCKET_H
#define DT_REMOTE_SSHSOCKET_H

#include <libssh2.h>
#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "launcher/base/bytequeue.h"

struct dt_sshsocket { /* zero-initialised: not connected yet */
    uv_tcp_t *tcp;
    uv_write_t write;
    bool closing;
    bool hung_up;      /* the host closed the connection, or it broke */
    int error;         /* why it broke, as libuv's code, or 0 */
    char greeting[32]; /* how what the host sent first begins */
    struct dt_bytequeue in;
    struct dt_bytequeue wire;
    struct dt_bytequeue in_flight; /* the part that libuv is writing */
    void (*moved)(void *arg);      /* bytes have arrived or have been sent, or it hung up */
    void (*closed)(void *arg);
    void *arg;
};

/* Takes ownership of tcp, which is connected. moved may be called as soon as reading has begun.
 * closed is called once, after dt_sshsocket_close. */
void dt_sshsocket_take(struct dt_sshsocket *s, uv_tcp_t *tcp, void (*moved)(void *arg),
                       void (*closed)(void *arg), void *arg);
void dt_sshsocket_read(struct dt_sshsocket *s);
/* Breaks the connection if the host's kernel has not answered for this many seconds; with 0 the
 * system decides. A host that answers slowly is not silent. */
void dt_sshsocket_end_when_silent(struct dt_sshsocket *s, int seconds);

/* Returns a non-blocking session over it, whose abstract is s, or NULL if memory has run out. */
LIBSSH2_SESSION *dt_sshsocket_session(struct dt_sshsocket *s);
/* The descriptor that libssh2_session_handshake asks for. */
int dt_sshsocket_fd(const struct dt_sshsocket *s);

/* Sends the packets in wire. If that fails at once, calls moved before it returns. */
void dt_sshsocket_flush(struct dt_sshsocket *s);
size_t dt_sshsocket_pending(const struct dt_sshsocket *s); /* bytes not yet sent */

/* Makes every later call of libssh2 return at once. */
void dt_sshsocket_hang_up(struct dt_sshsocket *s);
/* Sends what does not block, then closes. */
void dt_sshsocket_close(struct dt_sshsocket *s);
void dt_sshsocket_free(struct dt_sshsocket *s); /* frees its contents, but not s */

#endif
