/* The end of printing to standard output. */
#ifndef DT_BASE_PRINTED_H
#define DT_BASE_PRINTED_H

#include "launcher/base/error.h"

/* Returns 0 if everything printed has been written, else -1. If the reader has left (head), err has
 * no text, and the exit code of a program that SIGPIPE has killed. */
int dt_printed(struct dt_error *err);

#endif
