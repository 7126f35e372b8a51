/* The configuration file: options that need not be typed, one "option = value" on each line. */
#ifndef DT_CMD_CONFIG_H
#define DT_CMD_CONFIG_H

#include "cmd/options.h"

/* Fills o from --config FILE, else from ~/.config/dtrun/config if that exists, and then from argv,
 * whose options win. On failure err says why, with exit code 2. A mistake in the file is
 * "FILE:LINE: what is wrong". */
int dt_config_parse(struct dt_options *o, int argc, char **argv, struct dt_error *err);

/* Parses the text of such a file, n bytes, into o. name is the file's name for messages. */
int dt_config_text(struct dt_options *o, const char *name, const char *text, size_t n,
                   struct dt_error *err);

#endif
