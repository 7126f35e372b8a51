/* The words of dtrun's command line: its own options, those of other launchers, and the program.
 * What users are likely to have mistyped is explained. */
#ifndef DT_CMD_COMMANDLINE_H
#define DT_CMD_COMMANDLINE_H

#include "cmd/options.h"

/* Parses argv (argv[0] is skipped). Its options win over those of dt_options_set. Fails as that
 * function does. */
int dt_commandline_read(struct dt_options *o, int argc, char **argv, struct dt_error *err);

#endif
