/* The two connections of a host's leader: out to the next host's leader, in from the one before it.
 */
#ifndef DT_HOST_TCP_H
#define DT_HOST_TCP_H

#include <stdint.h>

#include "runtime/host/alarm.h"
#include "runtime/wire/auth.h"

struct dt_tcp_plan {
    struct dt_auth out; /* out.peer: the leader to connect to */
    struct dt_auth in;  /* in.peer: the leader to be called by */
    const char *host;   /* where out.peer listens: a numeric address */
    uint16_t port;
    int listener;
    struct dt_alarm alarm; /* the death of a rank ends the wait */
    int timeout_ms;
};

/* Makes both connections at once. Strangers at the listener are turned away: a few are heard at a
 * time, each for a short while, and none learns or changes anything. On success *out_fd and *in_fd
 * are non-blocking connections whose other ends are proved. */
dt_result_t dt_tcp_connect(const struct dt_tcp_plan *plan, int *out_fd, int *in_fd);

#endif
