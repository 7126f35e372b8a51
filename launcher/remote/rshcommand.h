/* --rsh: a command of the user's that runs a command on a host over a clean pipe. Pure. */
#ifndef DT_REMOTE_RSHCOMMAND_H
#define DT_REMOTE_RSHCOMMAND_H

#include "launcher/base/error.h"
#include "runtime/wire/codec.h"

/* Splits text into words as a shell does, with quotes and variables but without substituted
 * commands. %h stands for the host's name, %c for the command there, %% for a percent sign. Fails
 * (exit code 2) where text is no such command, or lacks %h. The caller frees words. */
int dt_rsh_parse(struct dt_strs *words, const char *text, struct dt_error *err);

/* What to execute for a host. Without %c the words "sh -c command" follow, as suits what takes a
 * list of arguments; %c is for what joins its arguments for a shell there, as rsh does. The caller
 * frees argv. */
void dt_rsh_argv(struct dt_strs *argv, const struct dt_strs *words, const char *host,
                 const char *command);

#endif
