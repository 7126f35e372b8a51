/* One connection between two agents that check whether their hosts reach each other. They
 * authenticate themselves. The caller sends data; the host confirms with one byte that all has
 * arrived, and sends as much back.
 *
 * It uses no event loop: the owner of the socket waits for it, in the requested direction and until
 * the deadline. */
#ifndef DT_AGENT_PROBEWAY_H
#define DT_AGENT_PROBEWAY_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/wire/handshake.h"
#include "runtime/wire/msg.h"

struct dt_probeway {
    struct dt_handshake shake;
    bool calling;
    enum {
        DT_WAY_SHAKING,
        DT_WAY_THERE,
        DT_WAY_RECEIPT,
        DT_WAY_BACK,
        DT_WAY_LEAVING,
        DT_WAY_LEFT
    } phase;
    uint32_t left;        /* bytes left in this phase */
    uint64_t bulk_ns;     /* after DT_WAY_BACK: from the first byte sent to the confirmation */
    uint64_t deadline_ns; /* postponed while bytes pass; before that the owner sets it */
};

void dt_probeway_call(struct dt_probeway *w, int fd, const struct dt_auth *auth);
void dt_probeway_host(struct dt_probeway *w, int fd);

bool dt_probeway_is_sending(const struct dt_probeway *w);

/* The connection is made, but the other side has not authenticated itself yet. */
bool dt_probeway_is_shaking(const struct dt_probeway *w);

/* Proceeds as far as possible without blocking, with that many bytes each way. THROUGH: it is
 * complete. A host lets the caller hang up first. FAILED: see errno. */
enum dt_verdict dt_probeway_step(struct dt_probeway *w, const struct dt_auth *auth, uint32_t bytes);

/* Everything sent has been received: only the other agent keeps this one waiting. */
bool dt_probeway_has_arrived(const struct dt_probeway *w);

/* Returns what it says about the path if a caller's connection fails now. */
enum dt_reach_state dt_probeway_failure(const struct dt_probeway *w, int error);

#endif
