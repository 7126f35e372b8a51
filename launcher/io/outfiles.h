/* The output of ranks and auxiliaries in files, with --output-dir: bytes as they are. Writing to
 * them blocks the loop for as long as the file system takes, as any program's write to a file does.
 */
#ifndef DT_IO_OUTFILES_H
#define DT_IO_OUTFILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/base/error.h"

struct dt_outfiles;

struct dt_outfiles_config {
    const char *pattern; /* as in outname.h, checked */
    uint32_t np;
    uint32_t nprocs;          /* ranks and auxiliaries */
    const char *const *hosts; /* by number (role.h): where each first runs */
    bool merged;              /* only standard output */
};

/* How many descriptors that takes. */
size_t dt_outfiles_count(const struct dt_outfiles_config *config);
/* Makes everybody's files, empty, and the directories above them. NULL on failure. What config
 * points to must outlive it. */
struct dt_outfiles *dt_outfiles_open(const struct dt_outfiles_config *config, struct dt_error *err);
/* Whether that would do, so far as can be told without making or emptying anything. */
int dt_outfiles_check(const struct dt_outfiles_config *config, struct dt_error *err);
/* Returns 0, or -1 with errno and, in *name, the file that cannot be written: told once per file,
 * what comes later for it is dropped. */
int dt_outfiles_write(struct dt_outfiles *f, uint32_t number, int fd, const void *data, size_t n,
                      char **name);
/* Tells what only closing tells (a full disk on NFS): returns like dt_outfiles_write, for the first
 * file. Frees f in any case; accepts NULL. */
int dt_outfiles_close(struct dt_outfiles *f, char **name);

#endif
