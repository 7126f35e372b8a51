/* The process's listener for ranks of other hosts. It verifies them, and keeps a verified
 * connection until this rank enters the communicator that it is for.
 *
 * Other programs that connect learn nothing and change nothing: only a few handshakes run at a
 * time, each for a short while. Nothing here waits or runs by itself: a thread that waits for a
 * connection polls and calls dt_listener_turn. Any thread may call any function at any time, except
 * open, admit and close. */
#ifndef DT_WORLD_LISTENER_H
#define DT_WORLD_LISTENER_H

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/wire/auth.h"
#include "runtime/wire/handshake.h"

enum {
    DT_LISTENER_PENDING = 32, /* handshakes at a time */
    DT_LISTENER_POLLS = 1 + DT_LISTENER_PENDING,
};

struct dt_listener {
    int listener; /* -1: not open */
    struct dt_auth self;
    pthread_mutex_t lock;
    struct dt_listener_pending {
        struct dt_handshake shake;
        int64_t deadline; /* CLOCK_MONOTONIC, in ms */
    } pending[DT_LISTENER_PENDING];
    struct dt_listener_accepted {
        int fd;
        uint32_t rank; /* rank of the job */
        uint32_t connection;
        uint64_t comm;
    } * accepted, *used; /* used: data was sent along it; fd is -1 */
    size_t n_accepted, n_used;
    size_t room;   /* of accepted */
    bool has_lost; /* data that was sent to lost_by */
    uint32_t lost_by;
};

/* Initialises a listener that is not open. */
void dt_listener_init(struct dt_listener *d);
/* Listens on all addresses, on a port that the kernel chooses. Returns 0, or -1 with errno. */
int dt_listener_open(struct dt_listener *d, uint16_t *port);
/* Sets this rank's identity and the job's secret. No connection is accepted before. */
void dt_listener_admit(struct dt_listener *d, const uint8_t secret[DT_SECRET_BYTES],
                       uint32_t generation, uint32_t rank);
void dt_listener_close(struct dt_listener *d);

/* Fills in the descriptors to poll. Returns their number. */
size_t dt_listener_polls(struct dt_listener *d, struct pollfd p[DT_LISTENER_POLLS]);
/* Serves all connections that are ready. Returns 0, or EMFILE, ENFILE or ENOMEM: no connection can
 * be accepted, so a wait would be in vain. */
int dt_listener_turn(struct dt_listener *d);
/* Call after the last turn: closes unverified connections, since this thread may not take a turn
 * again for hours. */
void dt_listener_leave(struct dt_listener *d);

/* A verified connection, which the caller now owns, or -1: there is none yet. */
int dt_listener_take(struct dt_listener *d, uint64_t comm, uint32_t connection, uint32_t rank);
/* Call before the first send along a connection that was taken. The peer may not have learnt that
 * it was accepted, and connects again. Returns that newer connection, to be used instead, or -1. If
 * the peer connects again after this call, data may be lost: dt_listener_lost says so. */
int dt_listener_use(struct dt_listener *d, uint64_t comm, uint32_t connection, uint32_t rank);
/* Whether data that this rank has sent may be lost. Sets *rank to the peer, a rank of the job. */
bool dt_listener_lost(struct dt_listener *d, uint32_t *rank);
/* Closes connections for a communicator that is being freed. */
void dt_listener_forget(struct dt_listener *d, uint64_t comm);

#endif
