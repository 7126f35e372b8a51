/* Pseudo-terminals as standard output of ranks (--unbuffered): programs write each line to a
 * terminal at once. */
#ifndef DT_AGENT_RANKS_PTY_H
#define DT_AGENT_RANKS_PTY_H

#include <stdint.h>

/* Opens one that changes no byte and becomes nobody's controlling terminal. As with pipe2, what is
 * written to ends[1] is read from ends[0]; once nobody can write any more, and all has been read,
 * read fails with EIO. Returns 0, or -1 with errno and both ends -1. */
int dt_pty_open(int ends[2]);
/* Says which limit, or what else, made dt_pty_open fail with *error for one of n processes. The
 * caller frees the text. Clears *error if the text says everything. */
char *dt_pty_lack(int *error, uint32_t n);

#endif
