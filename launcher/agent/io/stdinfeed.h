/* Standard input for those ranks of a host that read it. What the launcher sends goes into the pipe
 * of each of them, and bytes that all pipes have taken are returned as credit. So a rank that does
 * not read holds up the others. One that has closed its end, or has ended, no longer counts. When
 * no reader is left, the rest is dropped, but for the first second at most one window of it.
 *
 * Each pipe has a thread, which may wait in write(2) until its rank ends. */
#ifndef DT_AGENT_IO_STDINFEED_H
#define DT_AGENT_IO_STDINFEED_H

#include <stdbool.h>
#include <uv.h>

#include "launcher/agent/io/channel.h"

struct dt_stdinfeed;

/* readers is the largest number of pipes that will be added. */
struct dt_stdinfeed *dt_stdinfeed_create(uv_loop_t *loop, struct dt_channel *channel,
                                         uint32_t generation, uint32_t readers);
/* Takes over the writing end of a rank's pipe, which must be blocking. */
void dt_stdinfeed_add(struct dt_stdinfeed *f, int fd);
/* All pipes have been added. What came before this waits. Returns 0, or an error number if no
 * thread could be started. */
int dt_stdinfeed_begin(struct dt_stdinfeed *f);
/* Returns false if the launcher has sent more than its credit. */
bool dt_stdinfeed_put(struct dt_stdinfeed *f, const void *data, size_t n);
void dt_stdinfeed_eof(struct dt_stdinfeed *f);
void dt_stdinfeed_destroy(struct dt_stdinfeed *f); /* accepts NULL */

#endif
