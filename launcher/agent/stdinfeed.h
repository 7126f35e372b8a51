/* Standard input of one rank: what the launcher sends goes into the rank's pipe, and what the pipe
 * has taken is given back as credit. A rank that does not read is waited for; one that closed its
 * end swallows the rest. */
#ifndef DT_AGENT_STDINFEED_H
#define DT_AGENT_STDINFEED_H

#include <stdbool.h>
#include <uv.h>

#include "launcher/agent/channel.h"

struct dt_stdinfeed;

/* Takes the writing end of the rank's pipe. */
struct dt_stdinfeed *dt_stdinfeed_create(uv_loop_t *loop, struct dt_channel *channel, uint32_t rank,
                                         int fd);
/* Returns false when the launcher has sent more than it may. */
bool dt_stdinfeed_put(struct dt_stdinfeed *f, const void *data, size_t n);
void dt_stdinfeed_eof(struct dt_stdinfeed *f);
void dt_stdinfeed_destroy(struct dt_stdinfeed *f); /* accepts NULL */

#endif
