/* When a pipe falls quiet after text that ends no line: a prompt, which the user must see, and not
 * the half of a line whose rest is late.
 *
 * Only whoever reads the pipe can tell. The pipe must have been empty for 200 ms, however late this
 * process itself is; nobody may be in the middle of a write; and the text must not have been cut by
 * a program's output buffer. */
#ifndef DT_AGENT_QUIET_H
#define DT_AGENT_QUIET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DT_QUIET_MS = 200 };

struct dt_quiet {
    bool undecided;   /* unfinished text was read, and it is open whether more will follow */
    bool emptied;     /* the last read left nothing in the pipe */
    size_t burst;     /* bytes read since the pipe was last seen empty */
    uint64_t due_ns;  /* when to decide, by uv_hrtime */
    uint64_t wait_ns; /* how long that was put off */
};

/* n > 0 bytes were read; emptied: there were no more. */
void dt_quiet_read(struct dt_quiet *q, const void *data, size_t n, bool emptied);
/* To be called now and then while undecided. True once, when the pipe is quiet. May look at all
 * processes of the machine if *may_look, which then becomes false; else decides at a later call. */
bool dt_quiet_begins(struct dt_quiet *q, int fd, bool *may_look);

#endif
