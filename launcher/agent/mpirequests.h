/* What the MPI libraries of a generation's ranks request, by PMI-1 or PMIx, and how the agent
 * answers. */
#ifndef DT_AGENT_MPIREQUESTS_H
#define DT_AGENT_MPIREQUESTS_H

#include "launcher/agent/generationstate.h"

extern const struct dt_pmisock_events dt_mpirequests_pmi_events; /* arg: the generation */

/* The ranks' program needs a PMIx server, as why shows. arg is the generation. */
void dt_mpirequests_needs_pmix(void *arg, const char *why);
/* Sends READY once all ranks wait at the gate, and a server that they need has started or failed.
 */
void dt_mpirequests_maybe_ready(struct dt_generation *g);
void dt_mpirequests_free(struct dt_generation *g);

#endif
