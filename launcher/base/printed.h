/* The end of printing to standard output. */
#ifndef DT_BASE_PRINTED_H
#define DT_BASE_PRINTED_H

#include "launcher/base/error.h"

/* 0 when all that was printed is written, else -1. For a reader that has left (head) err has no
 * text, and the exit code of a program that SIGPIPE ends. */
int dt_printed(struct dt_error *err);

#endif
