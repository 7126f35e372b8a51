/* Reads a small file whole. */
#ifndef DT_BASE_SLURP_H
#define DT_BASE_SLURP_H

#include <stddef.h>

#include "launcher/base/error.h"
#include "launcher/base/strbuf.h"

/* Appends the content of the file at path ("-": standard input) to b. Returns 0, or -1 with the
 * reason, without the file's name, in err. More than max bytes are an error. */
int dt_slurp(struct dt_strbuf *b, const char *path, size_t max, struct dt_error *err);

/* Like dt_slurp, but "-" is a file. A file of another user than root, or one to which all users may
 * write, is an error. */
int dt_slurp_own(struct dt_strbuf *b, const char *path, size_t max, struct dt_error *err);

#endif
