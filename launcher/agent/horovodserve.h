/* Detects whether the ranks of a generation use Horovod, and runs the rendezvous server for them on
 * the first host. */
#ifndef DT_AGENT_HOROVODSERVE_H
#define DT_AGENT_HOROVODSERVE_H

#include "launcher/agent/generationstate.h"

/* Their program uses Horovod, as why shows. arg is the generation. */
void dt_horovodserve_uses(void *arg, const char *why);
/* All ranks wait at the gate: listens if they need the server. Returns false, with errno, if it
 * cannot. */
bool dt_horovodserve_listen(struct dt_generation *g);
uint16_t dt_horovodserve_port(const struct dt_generation *g); /* 0: there is no server */
void dt_horovodserve_go(struct dt_generation *g, const struct dt_msg_go *go);
/* Call this when the generation is destroyed and not earlier: its ranks on other hosts may outlive
 * those here. */
void dt_horovodserve_close(struct dt_generation *g);

#endif
