/* The output of ranks and auxiliaries in files, with --output-dir: bytes as they are. Like standard
 * output in a file they are written in a thread (filewriter.h). */
#ifndef DT_IO_OUTFILES_H
#define DT_IO_OUTFILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "launcher/base/error.h"

struct dt_outfiles;

struct dt_outfiles_config {
    const char *pattern; /* as in outname.h, checked */
    uint32_t np;
    uint32_t nprocs;          /* ranks and auxiliaries */
    const char *const *hosts; /* by number (role.h): where each first runs */
    bool merged;              /* only standard output */
};

struct dt_outfiles_events {
    /* n bytes of a stream are written, or dropped after a failure. */
    void (*wrote)(void *arg, uint32_t number, int fd, size_t n);
    /* This file cannot be written; what comes later for it is dropped. Once for each. */
    void (*failed)(void *arg, const char *name, int error);
    void (*drained)(void *arg); /* all that was given is written */
};

/* How many descriptors that takes. */
size_t dt_outfiles_count(const struct dt_outfiles_config *config);
/* Makes everybody's files, empty, and the directories above them. NULL on failure. What config
 * points to must outlive it. */
struct dt_outfiles *dt_outfiles_open(const struct dt_outfiles_config *config, struct dt_error *err);
/* Whether that would do, so far as can be told without making or emptying anything. */
int dt_outfiles_check(const struct dt_outfiles_config *config, struct dt_error *err);
/* From now on the files can be written. */
void dt_outfiles_start(struct dt_outfiles *f, uv_loop_t *loop,
                       const struct dt_outfiles_events *events, void *arg);
void dt_outfiles_write(struct dt_outfiles *f, uint32_t number, int fd, const void *data, size_t n);
bool dt_outfiles_is_drained(const struct dt_outfiles *f); /* accepts NULL */
/* Drops what is not written yet, before the loop ends. Accepts NULL. */
void dt_outfiles_stop(struct dt_outfiles *f);
/* Returns 0, or -1 with errno and, in *name, the first file that is not whole, which only closing
 * tells of a full disk on NFS. Frees f in any case; accepts NULL. */
int dt_outfiles_close(struct dt_outfiles *f, char **name);

#endif
