/* Removing a directory with all that is in it, however deep that is. */
#ifndef DT_AGENT_REMOVETREE_H
#define DT_AGENT_REMOVETREE_H

#include <stdbool.h>

/* What cannot be removed does not keep the rest. Symbolic links are not followed, and what is
 * mounted there is left alone. Directories of this user that lack permissions go, too. Returns
 * whether nothing is left. */
bool dt_removetree(const char *path);

#endif
