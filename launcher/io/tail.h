/* Keeps the last lines of a stream for the message that reports its rank's death. Lines that do not
 * say why it died are left out: frames of a native stack, which follow the reason, those without
 * words, and what Open MPI and PETSc say with each error. Pure. */
#ifndef DT_IO_TAIL_H
#define DT_IO_TAIL_H

#include <stddef.h>

#include "launcher/base/strbuf.h"

enum {
    DT_TAIL_LINES = 5,
    DT_TAIL_WIDTH = 400, /* bytes kept of a longer line */
};

struct dt_tail {
    char *lines[DT_TAIL_LINES]; /* a ring; NULL: no line yet */
    unsigned next;
    struct dt_strbuf open; /* the line that has not ended yet */
};

void dt_tail_feed(struct dt_tail *t, const char *data, size_t n);
/* Returns the i-th of the kept lines, oldest first and without its end, or NULL if there are fewer.
 * A line that has not ended counts. */
const char *dt_tail_line(struct dt_tail *t, unsigned i);
void dt_tail_reset(struct dt_tail *t); /* removes all lines and frees them */

#endif
