/* Standard input of those ranks of a host that read it: what the launcher sends goes into the pipe
 * of each, and what all pipes have taken is given back as credit. A rank that does not read is
 * waited for; one that closed its end, or ended, no longer counts. When none is left the rest is
 * swallowed. */
#ifndef DT_AGENT_STDINFEED_H
#define DT_AGENT_STDINFEED_H

#include <stdbool.h>
#include <uv.h>

#include "launcher/agent/io/channel.h"

struct dt_stdinfeed;

/* For at most so many readers. */
struct dt_stdinfeed *dt_stdinfeed_create(uv_loop_t *loop, struct dt_channel *channel,
                                         uint32_t generation, uint32_t readers);
/* Takes the writing end of a rank's pipe; before the first _put. */
void dt_stdinfeed_add(struct dt_stdinfeed *f, int fd);
/* Returns false when the launcher has sent more than it may. */
bool dt_stdinfeed_put(struct dt_stdinfeed *f, const void *data, size_t n);
void dt_stdinfeed_eof(struct dt_stdinfeed *f);
void dt_stdinfeed_destroy(struct dt_stdinfeed *f); /* accepts NULL */

#endif
