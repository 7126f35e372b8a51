/* One connection between two agents that check whether their hosts reach each other. They
 * authenticate themselves. The caller sends data; the host confirms with one byte that all has
 * arrived, and sends as much back.
 *
 * It uses no event loop: the owner of the socket waits for it, in the requested direction and until
 * the deadline. */
#ifndef DT_AGENT_PROBEPATH_H
#define DT_AGENT_PROBEPATH_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/wire/handshake.h"
#include "runtime/wire/msg.h"

struct dt_probepath {
    struct dt_handshake shake;
    bool calling;
    enum {
        DT_PATH_SHAKING,
        DT_PATH_THERE,
        DT_PATH_RECEIPT,
        DT_PATH_BACK,
        DT_PATH_LEAVING,
        DT_PATH_LEFT
    } phase;
    uint32_t left;        /* bytes left in this phase */
    uint64_t began_ns;    /* when a caller sends the first byte */
    uint64_t bulk_ns;     /* from DT_PATH_BACK on: until the confirmation */
    uint64_t both_ns;     /* from DT_PATH_LEAVING on: until the last byte has come back */
    uint64_t deadline_ns; /* postponed while bytes pass; before that the owner sets it */
};

void dt_probepath_call(struct dt_probepath *w, int fd, const struct dt_auth *auth);
void dt_probepath_host(struct dt_probepath *w, int fd);

bool dt_probepath_is_sending(const struct dt_probepath *w);

/* The connection is made, but the other side has not authenticated itself yet. */
bool dt_probepath_is_shaking(const struct dt_probepath *w);

/* Proceeds as far as possible without blocking, with that many bytes each way. THROUGH: it is
 * complete. A host lets the caller hang up first. FAILED: see errno. */
enum dt_verdict dt_probepath_step(struct dt_probepath *w, const struct dt_auth *auth,
                                  uint32_t bytes);

/* Everything sent has been received: only the other agent keeps this one waiting. */
bool dt_probepath_has_arrived(const struct dt_probepath *w);

/* Returns what it says about the path if a caller's connection fails now. */
enum dt_reach_state dt_probepath_failure(const struct dt_probepath *w, int error);

#endif
