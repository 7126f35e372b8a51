/* Removes a directory with everything in it, however deep that is. */
#ifndef DT_AGENT_RANKS_REMOVETREE_H
#define DT_AGENT_RANKS_REMOVETREE_H

#include <stdbool.h>

/* Removes as much as possible: an entry that cannot be removed does not stop it. Follows no
 * symbolic links, and leaves mounted file systems alone. Also removes directories of this user that
 * lack permissions. Returns whether nothing is left. */
bool dt_removetree(const char *path);
/* The same for a directory that path may name ("": none), and sets path to "" if nothing is left.
 */
void dt_removetree_named(char *path);

#endif
