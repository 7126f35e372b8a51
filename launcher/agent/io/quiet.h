/* Detects when a pipe becomes quiet after text that ends no line: a prompt, which the user must
 * see, and not the half of a line whose rest is late.
 *
 * Only the reader of the pipe can tell. The pipe must have been empty for 200 ms, however late this
 * process itself is. No process may be in the middle of a write. The end of a program's output
 * buffer must not have cut the text. */
#ifndef DT_AGENT_IO_QUIET_H
#define DT_AGENT_IO_QUIET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DT_QUIET_MS = 200 };

struct dt_quiet {
    bool undecided;   /* unfinished text was read, and more may follow */
    bool emptied;     /* the last read left nothing in the pipe */
    size_t burst;     /* bytes read since the pipe was last seen empty */
    uint64_t due_ns;  /* when to decide, by uv_hrtime */
    uint64_t wait_ns; /* how long the decision was delayed */
};

/* n > 0 bytes were read. emptied: the pipe had no more. */
void dt_quiet_read(struct dt_quiet *q, const void *data, size_t n, bool emptied);
/* Call this from time to time while undecided. Returns true once, when the pipe is quiet. If
 * *may_look, it may look at all processes of the machine and then sets *may_look to false;
 * otherwise a later call decides. */
bool dt_quiet_begins(struct dt_quiet *q, int fd, bool *may_look);

#endif
