/* When dtrun checks whether a host that a running job has lost is back. Pure.
 *
 * The first wait is the user's. Each further one is twice as long, up to an hour, also if the host
 * came back in between: a host that is lost again and again is used less and less. */
#ifndef DT_JOB_STATE_COMEBACK_H
#define DT_JOB_STATE_COMEBACK_H

#include <stdint.h>

enum { DT_COMEBACK_MAX_S = 3600 };

struct dt_comeback { /* of a host; zero-initialised */
    uint64_t wait_s; /* the last wait; 0: there was none */
    uint64_t due_ns; /* when the wait is over; 0: none is going on */
};

/* Begins a wait, unless one is going on. first_s: how long the first one is. */
void dt_comeback_wait(struct dt_comeback *c, uint64_t first_s, uint64_t now_ns);
/* Ends the wait: the host is being tried, or is used. */
void dt_comeback_end(struct dt_comeback *c);
/* The host was being tried, and something more important came up: it is tried as soon as possible.
 */
void dt_comeback_put_off(struct dt_comeback *c, uint64_t now_ns);

#endif
