/* What the MPI libraries of a generation's ranks request, by PMI-1 or PMIx, and how the agent
 * answers. */
#ifndef DT_AGENT_MPIREQUESTS_H
#define DT_AGENT_MPIREQUESTS_H

#include "launcher/agent/generationstate.h"

extern const struct dt_pmisock_events dt_mpirequests_pmi_events; /* arg: the generation */

/* The ranks' program needs a PMIx server, as why shows. arg is the generation. */
void dt_mpirequests_needs_pmix(void *arg, const char *why);
/* A rank was reaped. Its last MPI_STATE must precede its EXIT. */
void dt_mpirequests_catch_up(struct dt_generation *g);
/* A child of the agent has died. Returns whether it was the PMIx server. */
bool dt_mpirequests_died(struct dt_generation *g, const siginfo_t *info);
/* Sends READY once all ranks wait at the gate, and a server that they need has started or failed.
 */
void dt_mpirequests_maybe_ready(struct dt_generation *g);
/* Call this when no process is left that has files in the server's directory. */
void dt_mpirequests_remove_dir(struct dt_generation *g);
void dt_mpirequests_free(struct dt_generation *g);

#endif
