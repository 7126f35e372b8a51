/* Names of the files of --output-dir. Pure.
 *
 * A pattern is a path in which %r is the rank with at least five digits, %h its host and %% a
 * percent sign. A pattern without %r is a directory: "/rank.%r" is appended. The stream's ".out" or
 * ".err" comes last. For an auxiliary, "scheduler" or "server.00000" replaces the rank's number, or
 * "rank.%r". */
#ifndef DT_IO_OUTNAME_H
#define DT_IO_OUTNAME_H

#include <stddef.h>
#include <stdint.h>

#include "launcher/base/error.h"

int dt_outname_check(const char *pattern, struct dt_error *err);
/* Returns the name for a checked pattern and the process with that number (role.h). The caller
 * frees it. */
char *dt_outname_make(const char *pattern, uint32_t number, uint32_t np, const char *host,
                      const char *suffix);
/* Returns the length of the directory that all ranks share: the whole pattern if it names a
 * directory without %, else up to the last slash before the first %. 0 means none. */
size_t dt_outname_base(const char *pattern);

#endif
