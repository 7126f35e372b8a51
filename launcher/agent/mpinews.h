/* What the MPI libraries of a generation's ranks ask for, by PMI-1 or PMIx, and what becomes of it.
 */
#ifndef DT_AGENT_MPINEWS_H
#define DT_AGENT_MPINEWS_H

#include "launcher/agent/generationstate.h"

extern const struct dt_pmisock_events dt_mpinews_pmi_events; /* arg: the generation */

/* The ranks' program needs a PMIx server, because of this; arg: the generation. */
void dt_mpinews_needs_pmix(void *arg, const char *why);
/* Says READY once all ranks wait at the gate, and a server that is needed is there or cannot be. */
void dt_mpinews_maybe_ready(struct dt_generation *g);
/* No process is left that has files in the server's directory. */
void dt_mpinews_remove_dir(struct dt_generation *g);
void dt_mpinews_free(struct dt_generation *g);

#endif
