/* Finding out, before ranks run, which hosts can be reached from this one and at which of their
 * addresses. Unless the job has only this host, the agent listens for as long as it lives; on PROBE
 * it connects to the agents of other hosts, and answers with one REACH.
 *
 * A target is reached when its agent has proved itself there (an address that several hosts have is
 * no proof of anything), and when data enough to fill packets have gone both ways. */
#ifndef DT_AGENT_PROBE_H
#define DT_AGENT_PROBE_H

#include <uv.h>

#include "launcher/agent/io/channel.h"

struct dt_probe;

/* Listens at a port that the kernel chooses, unless port is NULL. Never fails: where it cannot
 * listen, *port is 0, and nobody can reach this host. */
struct dt_probe *dt_probe_create(uv_loop_t *loop, uint16_t *port);

/* Takes what *m holds; an earlier PROBE that is not answered will not be. */
void dt_probe_begin(struct dt_probe *p, struct dt_channel *channel, struct dt_msg_probe *m);

#endif
