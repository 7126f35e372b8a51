/* Who waits in a collective call, for how long, and for whom. Pure; from what every rank's call is,
 * as PONG tells it. */
#ifndef DT_JOB_WAITS_H
#define DT_JOB_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/wire/codec.h"

struct dt_wait {       /* of a rank */
    uint64_t call;     /* as of dt_hostshm_rank */
    uint64_t since_ns; /* it has been seen in that */
    uint64_t seen_ns;  /* last */
    bool stopped;      /* the process is, by a signal */
    bool ended;        /* the rank has: it waits for nobody */
};

void dt_wait_note(struct dt_wait *w, uint64_t call, bool stopped, uint64_t now_ns);
/* The rank that has been in one call for longest, or -1: nobody is in one. */
int dt_wait_longest(const struct dt_wait *w, uint32_t np);
/* How long it has been there at the time up to which all ranks are known: a host that is not heard
 * of may be further than it seems. */
double dt_wait_seconds(const struct dt_wait *w, uint32_t np, uint32_t who);
/* For whom that rank waits: those that have not come to its call yet; if all have, those that
 * are stopped in it or on the way to it. Empty when that is unknown. The caller frees list->v. */
void dt_wait_for_whom(const struct dt_wait *w, uint32_t np, uint32_t who, struct dt_u32s *list);
/* The ranks that are in the call that "who" is in, and not stopped. */
void dt_wait_with(const struct dt_wait *w, uint32_t np, uint32_t who, struct dt_u32s *list);

#endif
