/* One connection between two agents that check whether their hosts reach each other. They
 * authenticate each other. The caller sends data; the host confirms with one byte that all has
 * arrived, and sends as much back. Then the caller hangs up.
 *
 * It uses no event loop: the owner of the socket waits for it, in the requested direction and until
 * the deadline. */
#ifndef DT_AGENT_PROBE_PROBEPATH_H
#define DT_AGENT_PROBE_PROBEPATH_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/wire/handshake.h"
#include "runtime/wire/msg.h"

struct dt_probepath {
    struct dt_handshake shake;
    bool calling;
    enum {
        DT_PATH_SHAKING, /* the handshake */
        DT_PATH_THERE,   /* data from the caller */
        DT_PATH_RECEIPT, /* the host's confirmation */
        DT_PATH_BACK,    /* data from the host */
        DT_PATH_LEAVING, /* the host waits until the caller hangs up */
        DT_PATH_LEFT,
    } phase;
    uint32_t left;        /* bytes left in this phase */
    uint64_t began_ns;    /* when a caller sends the first byte */
    uint64_t bulk_ns;     /* from DT_PATH_BACK on: until the confirmation */
    uint64_t both_ns;     /* from DT_PATH_LEAVING on: until the last byte has come back */
    uint64_t deadline_ns; /* postponed while bytes pass; before that the owner sets it */
};

void dt_probepath_call(struct dt_probepath *p, int fd, const struct dt_auth *auth);
void dt_probepath_host(struct dt_probepath *p, int fd);

bool dt_probepath_is_sending(const struct dt_probepath *p);

/* The connection is made, but the other side has not authenticated itself yet. */
bool dt_probepath_is_shaking(const struct dt_probepath *p);

/* Proceeds as far as possible without blocking, with that many bytes each way. THROUGH: it is
 * complete. A host lets the caller hang up first. FAILED: see errno. */
enum dt_verdict dt_probepath_step(struct dt_probepath *p, const struct dt_auth *auth,
                                  uint32_t bytes);

/* Everything sent has been received: only the other agent keeps this one waiting. */
bool dt_probepath_has_arrived(const struct dt_probepath *p);

/* Returns what a failure of a caller's connection in this phase says about the path. */
enum dt_reach_state dt_probepath_failure(const struct dt_probepath *p, int error);

#endif
