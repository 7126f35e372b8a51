/* Detects a prompt, which the user must see at once: text that does not end its line, and after
 * which the pipe becomes quiet. The beginning of a line whose rest is merely late is no prompt.
 *
 * Only the reader of the pipe can tell them apart. For a prompt, the pipe must have been empty for
 * 200 ms, however late this process itself runs. No process may be in the middle of a write. The
 * text must not end where a full output buffer would have cut it. */
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

/* Whether there is nothing to read now from this pipe or terminal. */
bool dt_quiet_is_empty(int fd);
/* n > 0 bytes were read. emptied: the pipe had no more. */
void dt_quiet_read(struct dt_quiet *q, const void *data, size_t n, bool emptied);
enum dt_quiet_state {
    DT_QUIET_OPEN,       /* not decided, or decided before */
    DT_QUIET_BEGINS,     /* reported once: the pipe is quiet */
    DT_QUIET_NEEDS_LOOK, /* a process may be in the middle of a write: call dt_quiet_looked */
};

/* Call this from time to time while undecided. */
enum dt_quiet_state dt_quiet_ask(struct dt_quiet *q, int fd);
/* awake: a look at the processes, begun after the last read, has found a writer that is awake. */
enum dt_quiet_state dt_quiet_looked(struct dt_quiet *q, int fd, bool awake);

#endif
