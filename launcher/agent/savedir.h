/* Whether checkpoints can be written to a directory: asked before the first rank runs, not hours
 * later at the first save. Makes nothing. */
#ifndef DT_AGENT_SAVEDIR_H
#define DT_AGENT_SAVEDIR_H

/* Returns 0 when dir (absolute) can be written to, or made; else why not, as of errno. */
int dt_savedir_check(const char *dir);

#endif
