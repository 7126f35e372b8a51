/* --rsh: the user's own command, which runs another command on a host and passes on its input and
 * output unchanged. Pure. */
#ifndef DT_REMOTE_RSHCOMMAND_H
#define DT_REMOTE_RSHCOMMAND_H

#include <stdbool.h>

#include "launcher/base/error.h"
#include "runtime/wire/codec.h"

/* Splits text into words as a shell does, with quotes and variables but without command
 * substitution. %h stands for the host's name, %c for the remote command, %% for a percent sign.
 * Fails (exit code 2) if text is not such a command or lacks %h. The caller frees words. */
int dt_rsh_parse(struct dt_strs *words, const char *text, struct dt_error *err);

/* Whether the command lacks %c, and so must take a list of arguments. */
bool dt_rsh_takes_list(const struct dt_strs *words);

/* Makes the command to execute for a host. Without %c it appends the words "sh -c command", for
 * programs that take a list of arguments. %c is for programs that join their arguments for a remote
 * shell, as rsh does. The caller frees argv. */
void dt_rsh_argv(struct dt_strs *argv, const struct dt_strs *words, const char *host,
                 const char *command);

#endif
