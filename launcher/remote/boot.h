/* Bringing up an agent behind a login shell of which nothing is known. */
#ifndef DT_REMOTE_BOOT_H
#define DT_REMOTE_BOOT_H

#include <stdbool.h>
#include <stddef.h>

#include "launcher/base/error.h"
#include "launcher/base/strbuf.h"

/* What the far side prints before the agent's first frame, a line at a time. */
enum dt_boot_line {
    DT_BOOT_INCOMPLETE, /* no whole line is there yet */
    DT_BOOT_NOISE,      /* of the login shell's start-up files; line: the text */
    DT_BOOT_AGENT,      /* "DTRUN-AGENT VERSION": frames follow; line: VERSION */
    DT_BOOT_CACHED,     /* "DTRUN-CACHED FILE": runs what an earlier job left there; line: FILE */
    DT_BOOT_NEED,       /* "DTRUN-NEED MACHINE": wants the agent's file; line: what uname -m says */
    DT_BOOT_FAIL,       /* "DTRUN-FAIL TEXT": gives up; line: TEXT */
};

/* Takes the next line out of in. Noise that ends without a newline right before one of our lines is
 * a line of its own. */
enum dt_boot_line dt_boot_next(struct dt_strbuf *in, struct dt_strbuf *line);

/* Takes the next line out of in, whatever it is, made harmless for a terminal; false: none is
 * there. With all, an unfinished last line counts. */
bool dt_boot_text_line(struct dt_strbuf *in, struct dt_strbuf *line, bool all);

struct dt_boot {
    const char *agent_path; /* the local file, as of struct dt_link_config */
    bool push;
    bool afresh;       /* with push: replace the agent that is there, which did not start */
    bool alone;        /* the job has no other host */
    const char *token; /* makes the temporary file's name unique among all hosts that share the
                          directory */
};

/* The line for the login shell. Whatever shell that is (bash, dash, zsh, csh, fish), it sees one
 * exec of /bin/sh with one quoted script, in which there is no quote, backslash, newline or
 * exclamation mark.
 *
 * With push it runs the agent that an earlier job left on the host, told by its name, which holds
 * the file's hash; where there is none, or afresh, it prints DTRUN-NEED and reads the file, whose
 * bytes must follow at once and alone. Then it also removes other agents that have not been used
 * for a month. Without push it runs the dtrun-agent that is installed there.
 *
 * Returns -1 when the local file cannot be read. */
int dt_boot_command(struct dt_strbuf *command, const struct dt_boot *boot, struct dt_error *err);

/* The content of the file, which is read once for all hosts and lasts until another file is asked
 * for; or NULL. */
const struct dt_strbuf *dt_boot_agent(const char *path, struct dt_error *err);

#endif
