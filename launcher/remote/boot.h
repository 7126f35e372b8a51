/* Starts an agent through the user's login shell, whichever that is. */
#ifndef DT_REMOTE_BOOT_H
#define DT_REMOTE_BOOT_H

#include <stdbool.h>

#include "launcher/base/bytequeue.h"
#include "launcher/base/error.h"
#include "launcher/base/strbuf.h"

/* The lines that the remote side prints before the agent's first frame. */
enum dt_boot_line {
    DT_BOOT_INCOMPLETE, /* no complete line has arrived yet */
    DT_BOOT_NOISE,      /* printed by start-up files of the login shell; line: the text */
    DT_BOOT_AGENT,      /* "DTRUN-AGENT VERSION": frames follow; line: VERSION */
    DT_BOOT_CACHED,     /* "DTRUN-CACHED FILE": runs the agent of an earlier job; line: FILE */
    DT_BOOT_NEED,       /* "DTRUN-NEED MACHINE": wants the agent's file; line: what uname -m says */
    DT_BOOT_FAIL,       /* "DTRUN-FAIL TEXT": gives up; line: TEXT */
};

/* Takes the next line out of in. Noise that ends without a newline right before a DTRUN line
 * becomes a line of its own. */
enum dt_boot_line dt_boot_next(struct dt_bytequeue *in, struct dt_strbuf *line);

/* Takes the next line out of in, whatever it is, and replaces control characters. Returns false if
 * there is none. If all is set, an unfinished last line counts as one. */
bool dt_boot_text_line(struct dt_bytequeue *in, struct dt_strbuf *line, bool all);

struct dt_boot {
    const char *agent_path; /* the local file, as in struct dt_remote */
    bool push;
    bool afresh;       /* with push: replace the agent that is there, because it did not start */
    bool alone;        /* the job has no other host */
    const char *token; /* makes the name of the temporary file unique among all hosts that share the
                          directory */
};

/* Makes the command line for the login shell. Every shell (bash, dash, zsh, csh, fish) sees one
 * exec of /bin/sh with one quoted script, which contains no quote, backslash, newline or
 * exclamation mark.
 *
 * With push it runs the agent that an earlier job left on the host. The file's name contains its
 * hash. If there is none, or with afresh, it prints DTRUN-NEED and reads the file, whose bytes, and
 * nothing else, must follow at once. It then also removes other agents that were not used for a
 * month. Without push it runs the dtrun-agent that is installed there, at agent_path or in PATH.
 *
 * Returns -1 if the local file cannot be read. */
int dt_boot_command(struct dt_strbuf *command, const struct dt_boot *boot, struct dt_error *err);

/* Returns the content of the file, or NULL. The file is read once for all hosts; the content is
 * valid until another file is requested. */
const struct dt_strbuf *dt_boot_agent(const char *path, struct dt_error *err);

#endif
