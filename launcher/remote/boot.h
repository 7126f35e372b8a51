/* Bringing up an agent behind a login shell of which nothing is known. */
#ifndef DT_REMOTE_BOOT_H
#define DT_REMOTE_BOOT_H

#include <stdbool.h>
#include <stddef.h>

#include "launcher/base/strbuf.h"

/* What the far side prints before the agent's first frame, a line at a time. */
enum dt_boot_line {
    DT_BOOT_INCOMPLETE, /* no whole line is there yet */
    DT_BOOT_NOISE,      /* of the login shell's start-up files; line: the text */
    DT_BOOT_AGENT,      /* "DTRUN-AGENT VERSION": frames follow; line: VERSION */
    DT_BOOT_NEED,       /* "DTRUN-NEED MACHINE": wants the agent's file; line: what uname -m says */
    DT_BOOT_FAIL,       /* "DTRUN-FAIL TEXT": gives up; line: TEXT */
};

/* Takes the next line out of in. Noise that ends without a newline right before one of our lines is
 * a line of its own. */
enum dt_boot_line dt_boot_next(struct dt_strbuf *in, struct dt_strbuf *line);

/* Takes the next line out of in, whatever it is, made harmless for a terminal; false: none is
 * there. With all, an unfinished last line counts. */
bool dt_boot_text_line(struct dt_strbuf *in, struct dt_strbuf *line, bool all);

#endif
