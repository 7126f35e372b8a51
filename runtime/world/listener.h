/* Where the ranks of other hosts call: this process's listener, who proves them, and a place where
 * connections wait until this rank comes to the communicator that they are for.
 *
 * Strangers are turned away: a few callers are heard at a time, each for a short while, and none
 * learns or changes anything. Nothing here waits or runs by itself: whoever waits for a caller
 * polls and takes turns. Every function but open, admit and close may be called by any thread at
 * any time. */
#ifndef DT_WORLD_LISTENER_H
#define DT_WORLD_LISTENER_H

#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/wire/auth.h"
#include "runtime/wire/handshake.h"

enum {
    DT_LISTENER_PENDING = 32, /* callers that are heard at a time */
    DT_LISTENER_POLLS = 1 + DT_LISTENER_PENDING,
};

struct dt_listener {
    int listener; /* -1: nobody can call */
    struct dt_auth self;
    pthread_mutex_t lock;
    struct dt_listener_pending {
        struct dt_handshake shake;
        int64_t deadline; /* on CLOCK_MONOTONIC, in ms */
    } pending[DT_LISTENER_PENDING];
    struct dt_listener_accepted {
        int fd;
        uint32_t rank; /* of the job */
        uint32_t lane;
        uint64_t comm;
    } * accepted;
    size_t n_accepted;
};

/* A listener that is not open. */
void dt_listener_init(struct dt_listener *d);
/* Listens on all addresses, at a port that the kernel chooses. Returns 0, or -1 with errno. */
int dt_listener_open(struct dt_listener *d, uint16_t *port);
/* Who this is, and by what callers prove themselves. Nobody is heard before. */
void dt_listener_admit(struct dt_listener *d, const uint8_t secret[DT_SECRET_BYTES],
                       uint32_t generation, uint32_t rank);
void dt_listener_close(struct dt_listener *d);

/* What to poll for. Returns their number. */
size_t dt_listener_polls(struct dt_listener *d, struct pollfd p[DT_LISTENER_POLLS]);
/* Hears everybody who has something to say. Returns 0, or EMFILE or ENFILE: callers cannot be let
 * in, and would have to be waited for in vain. */
int dt_listener_turn(struct dt_listener *d);
/* Behind the last turn: whoever may not turn again for hours keeps no strangers' descriptors. */
void dt_listener_leave(struct dt_listener *d);

/* A proved connection, now the caller's, or -1: none has come yet. */
int dt_listener_take(struct dt_listener *d, uint64_t comm, uint32_t lane, uint32_t rank);
/* Closes what waits for a communicator that is no more. */
void dt_listener_forget(struct dt_listener *d, uint64_t comm);

#endif
