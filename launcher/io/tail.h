/* The last lines of a stream, for the message that tells of its rank's death. Pure. */
#ifndef DT_IO_TAIL_H
#define DT_IO_TAIL_H

#include <stddef.h>

#include "launcher/base/strbuf.h"

enum {
    DT_TAIL_LINES = 5,
    DT_TAIL_WIDTH = 400, /* of a longer line this much is kept */
};

struct dt_tail {
    char *lines[DT_TAIL_LINES]; /* a ring; NULL: none yet */
    unsigned next;
    struct dt_strbuf open; /* the line that has not ended yet */
};

void dt_tail_feed(struct dt_tail *t, const char *data, size_t n);
/* The i-th of the kept lines, oldest first and without its end; NULL when there are fewer. A line
 * that has not ended counts. */
const char *dt_tail_line(struct dt_tail *t, unsigned i);
void dt_tail_reset(struct dt_tail *t); /* forgets all; frees */

#endif
