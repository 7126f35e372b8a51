/* Whether checkpoints can be written to a directory: asked before the first rank runs, not hours
 * later at the first save. Makes nothing. */
#ifndef DT_AGENT_SAVEDIR_H
#define DT_AGENT_SAVEDIR_H

#include <limits.h>

/* Returns 0 when dir (absolute) can be written to, or made; else why not, as of errno. at: dir, or
 * the first directory above it that is there. */
int dt_savedir_check(const char *dir, char at[PATH_MAX]);

#endif
