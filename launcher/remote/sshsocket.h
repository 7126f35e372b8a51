/* The TCP connection beneath a libssh2 session.
 *
 * libssh2 does not touch it. What arrives is put into `in`, from which its RECV callback takes; its
 * SEND callback appends whole packets to `wire` and always succeeds. (On a link that takes only
 * part of a packet libssh2 1.10 confuses itself: a window adjustment that must wait is lost, and
 * reading while a write is half done fails.) What bounds `wire` is that the owner gives no
 * application data to libssh2 while much of it waits. */
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
    bool hung_up; /* the host closed the connection, or it broke */
    int error;    /* why it broke: libuv's, or 0 */
    struct dt_bytequeue in;
    struct dt_bytequeue wire;
    struct dt_bytequeue flying; /* what libuv is writing of it */
    void (*moved)(void *arg);   /* something has arrived, or has been sent, or it hung up */
    void (*closed)(void *arg);
    void *arg;
};

/* tcp is connected, and s's from now on. moved may come once reading has begun, closed comes once,
 * behind dt_sshsocket_close. */
void dt_sshsocket_take(struct dt_sshsocket *s, uv_tcp_t *tcp, void (*moved)(void *arg),
                       void (*closed)(void *arg), void *arg);
void dt_sshsocket_read(struct dt_sshsocket *s);
/* The connection breaks when the host's kernel has not answered for so long; 0: when the system
 * finds so. One that is slow is not silent. */
void dt_sshsocket_end_when_silent(struct dt_sshsocket *s, int seconds);

/* A session over it, whose abstract is s, that does not block. NULL: out of memory. */
LIBSSH2_SESSION *dt_sshsocket_session(struct dt_sshsocket *s);
/* What libssh2 wants to see. */
int dt_sshsocket_fd(const struct dt_sshsocket *s);

/* Sends what libssh2 has left. Where that fails at once, moved comes at once. */
void dt_sshsocket_flush(struct dt_sshsocket *s);
size_t dt_sshsocket_pending(const struct dt_sshsocket *s); /* bytes not yet sent */

/* libssh2 waits for nothing more. */
void dt_sshsocket_hang_up(struct dt_sshsocket *s);
/* Sends what goes without waiting. */
void dt_sshsocket_close(struct dt_sshsocket *s);
void dt_sshsocket_free(struct dt_sshsocket *s); /* what it holds; not s */

#endif
