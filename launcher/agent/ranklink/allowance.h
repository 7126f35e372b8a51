/* How much a rank may say for the user to read: so much at once, and a line a minute of what it has
 * used up. dtrun keeps what its user does not read, and a job may run for months. Pure. */
#ifndef DT_AGENT_ALLOWANCE_H
#define DT_AGENT_ALLOWANCE_H

#include <stdbool.h>
#include <stdint.h>

enum { DT_ALLOWANCE_MOST = 1000, DT_ALLOWANCE_EVERY_S = 60 };

struct dt_allowance { /* zero-initialised: nothing is used up */
    uint32_t used;
    uint64_t since_ns; /* up to here, what was used up has grown again */
};

/* Takes one; false: there is none left. */
bool dt_allowance_take(struct dt_allowance *a, uint64_t now_ns);

#endif
