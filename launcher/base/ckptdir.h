/* Whether a new job may use the checkpoint directory that the user named. */
#ifndef DT_BASE_CKPTDIR_H
#define DT_BASE_CKPTDIR_H

#include <stdbool.h>

/* Whether dir holds checkpoints (entries named step_*, or .replaced-step_*, which may be put back);
 * false also when there is no such directory. */
bool dt_ckptdir_is_used(const char *dir);

#endif
