/* Writes the output of ranks and auxiliaries to files, with --output-dir, byte for byte. They are
 * written in a thread, as is standard output if it is a file (filewriter.h). */
#ifndef DT_IO_OUTFILES_H
#define DT_IO_OUTFILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "launcher/base/error.h"

struct dt_outfiles;

struct dt_outfiles_config {
    const char *pattern; /* as in outname.h, already checked */
    uint32_t np;
    uint32_t nprocs;          /* number of ranks and auxiliaries */
    const char *const *hosts; /* by number (role.h): the host on which the process first runs */
    bool merged;              /* standard error goes to the file of standard output */
};

struct dt_outfiles_events {
    /* n bytes of a stream were written, or dropped after a failure. */
    void (*wrote)(void *arg, uint32_t number, int fd, size_t n);
    /* The file cannot be written; later bytes for it are dropped. Called once for each file. */
    void (*failed)(void *arg, const char *name, int error);
    void (*drained)(void *arg); /* everything that was added is written */
};

/* Returns how many descriptors the files take. */
size_t dt_outfiles_count(const struct dt_outfiles_config *config);
/* Creates all files, empty, and the directories above them. Returns NULL on failure. What config
 * points to must outlive the result. */
struct dt_outfiles *dt_outfiles_open(const struct dt_outfiles_config *config, struct dt_error *err);
/* Checks whether dt_outfiles_open would succeed, as far as possible without creating or emptying
 * anything. */
int dt_outfiles_check(const struct dt_outfiles_config *config, struct dt_error *err);
/* Starts writing to the files. */
void dt_outfiles_start(struct dt_outfiles *f, uv_loop_t *loop,
                       const struct dt_outfiles_events *events, void *arg);
void dt_outfiles_write(struct dt_outfiles *f, uint32_t number, int fd, const void *data, size_t n);
/* Whether nothing has been written for ms although something is to be written. Accepts NULL. */
bool dt_outfiles_await(const struct dt_outfiles *f, uint64_t ms);
/* Drops what is not written yet. Call it before the loop ends. Accepts NULL. */
void dt_outfiles_stop(struct dt_outfiles *f);
/* Returns 0, or -1 with errno and the first incomplete file in *name: on NFS, only closing reports
 * a full disk. Frees f in any case; accepts NULL. */
int dt_outfiles_close(struct dt_outfiles *f, char **name);

#endif
