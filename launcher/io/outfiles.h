/* The ranks' output in files, with --output-dir: DIR/rank.00012.out and DIR/rank.00012.err, bytes
 * as they are. Writing to them blocks the loop for as long as the file system takes, as any
 * program's write to a file does. */
#ifndef DT_IO_OUTFILES_H
#define DT_IO_OUTFILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/base/error.h"

struct dt_outfiles;

/* Makes dir where it is missing (not what is above it) and every rank's files, empty; with merged
 * only those of standard output. NULL on failure. */
struct dt_outfiles *dt_outfiles_open(const char *dir, uint32_t np, bool merged,
                                     struct dt_error *err);
/* Returns 0, or -1 with errno and, in *name, the file that cannot be written: told once per file,
 * what comes later for it is dropped. */
int dt_outfiles_write(struct dt_outfiles *f, uint32_t rank, int fd, const void *data, size_t n,
                      char **name);
/* Tells what only closing tells (a full disk on NFS): returns like dt_outfiles_write, for the first
 * file. Frees f in any case; accepts NULL. */
int dt_outfiles_close(struct dt_outfiles *f, char **name);

#endif
