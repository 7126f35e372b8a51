/* One connection between two agents that find out whether their hosts reach each other: they prove
 * themselves, the caller sends, the host says with one byte that all has come, and sends as much.
 *
 * No event loop: the owner of the socket waits for it, in the direction that is asked for, and
 * until the deadline. */
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
    uint32_t left;        /* bytes of this phase */
    uint64_t bulk_ns;     /* behind DT_WAY_BACK: from the first byte there to the receipt */
    uint64_t deadline_ns; /* moved on while bytes pass; before that the owner sets it */
};

void dt_probeway_call(struct dt_probeway *w, int fd, const struct dt_auth *auth);
void dt_probeway_host(struct dt_probeway *w, int fd);

bool dt_probeway_is_sending(const struct dt_probeway *w);

/* Connected, and the other side has not proved itself yet. */
bool dt_probeway_is_shaking(const struct dt_probeway *w);

/* As far as it goes now, with so many bytes each way; THROUGH: to the end. A host lets the caller
 * hang up first. FAILED: errno tells. */
enum dt_verdict dt_probeway_step(struct dt_probeway *w, const struct dt_auth *auth, uint32_t bytes);

/* What was sent has been received there: it is only the other agent that lets us wait. */
bool dt_probeway_has_arrived(const struct dt_probeway *w);

/* What it says of the way that a caller's connection failed now. */
enum dt_reach_state dt_probeway_failure(const struct dt_probeway *w, int error);

#endif
