/* Completion of dtrun's command line in a shell, made from the table of options. */
#ifndef DT_CMD_COMPLETION_H
#define DT_CMD_COMPLETION_H

#include "cmd/options.h"

/* Prints the shell's script to standard output. */
void dt_completion_print(enum dt_shell shell);

#endif
