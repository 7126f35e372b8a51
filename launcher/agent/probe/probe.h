/* Finds out, before ranks run, which hosts can be reached from this one and at which of their
 * addresses. Unless the job has only this host, the agent listens for as long as it lives. On PROBE
 * it connects to the agents of other hosts, and answers with one REACH.
 *
 * A target is reached when its agent has authenticated itself there (several hosts may have the
 * same address) and enough data to fill packets has been sent both ways. */
#ifndef DT_AGENT_PROBE_PROBE_H
#define DT_AGENT_PROBE_PROBE_H

#include <uv.h>

#include "launcher/agent/io/channel.h"

struct dt_probe;

/* Listens on a port that the kernel chooses, unless port is NULL. Never fails: if it cannot listen,
 * *port is 0, and no host can reach this one. */
struct dt_probe *dt_probe_create(uv_loop_t *loop, uint16_t *port);

/* Takes over the contents of *m. An earlier PROBE that has no answer yet gets none. */
void dt_probe_begin(struct dt_probe *p, struct dt_channel *channel, struct dt_msg_probe *m);

#endif
