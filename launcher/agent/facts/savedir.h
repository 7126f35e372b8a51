/* Whether checkpoints can be written to a directory: checked before the first rank runs, not hours
 * later at the first save. Creates nothing. */
#ifndef DT_AGENT_FACTS_SAVEDIR_H
#define DT_AGENT_FACTS_SAVEDIR_H

#include <limits.h>

/* Returns 0 if dir (absolute) can be written to or created, else an errno. at receives dir, or the
 * first existing directory above it. */
int dt_savedir_check(const char *dir, char at[PATH_MAX]);

#endif
