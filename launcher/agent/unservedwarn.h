/* Warns the user if the ranks of a generation use Horovod, MPI or libdtrun and are not served:
 * dtrun has not recognised their program, or something has removed their environment. */
#ifndef DT_AGENT_UNSERVEDWARN_H
#define DT_AGENT_UNSERVEDWARN_H

#include "launcher/agent/generationstate.h"

void dt_unservedwarn_begin(struct dt_generation *g); /* all ranks run */
void dt_unservedwarn_end(struct dt_generation *g);   /* no rank runs any more */

#endif
