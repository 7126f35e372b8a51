/* Whether the ranks of a generation use Horovod, and the rendezvous server that they then get of
 * the agent on the first host. */
#ifndef DT_AGENT_HOROVODNEWS_H
#define DT_AGENT_HOROVODNEWS_H

#include "launcher/agent/generationstate.h"

/* The ranks' program does, because of this; arg: the generation. */
void dt_horovodnews_uses(void *arg, const char *why);
/* All ranks wait at the gate: listens where they need it. Returns false, with errno, when it
 * cannot.
 */
bool dt_horovodnews_listen(struct dt_generation *g);
uint16_t dt_horovodnews_port(const struct dt_generation *g); /* 0: there is no server */
void dt_horovodnews_go(struct dt_generation *g, const struct dt_msg_go *go);
/* With the generation: its ranks on other hosts may outlive those here. */
void dt_horovodnews_close(struct dt_generation *g);

#endif
