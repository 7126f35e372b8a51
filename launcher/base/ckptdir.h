/* Whether the checkpoint directory that the user named already holds checkpoints. */
#ifndef DT_BASE_CKPTDIR_H
#define DT_BASE_CKPTDIR_H

#include <stdbool.h>

/* Returns whether dir holds checkpoints: entries named step_*, or .replaced-step_*, which a restore
 * may put back. Returns false if there is no such directory. */
bool dt_ckptdir_is_used(const char *dir);

#endif
