/* Where this dtrun's own dtrun-agent is. */
#ifndef DT_JOB_AGENTPATH_H
#define DT_JOB_AGENTPATH_H

#include "launcher/base/error.h"

/* $DTRUN_AGENT, else beside dtrun, in ../libexec/dtrun from there, or where it was installed.
 * Returns a path to free, or NULL with err. */
char *dt_agentpath_find(struct dt_error *err);

#endif
