/* Checks that everything printed to standard output was written. */
#ifndef DT_BASE_PRINTED_H
#define DT_BASE_PRINTED_H

#include "launcher/base/error.h"

/* Returns 0 if everything printed has been written, else -1. If the reader has gone (as "| head"
 * does), err has no text, and its exit code is that of a program killed by SIGPIPE. */
int dt_printed(struct dt_error *err);

#endif
