/* Files and directories that last. Each call that can fail says through dt_fail which file and
 * why (DT_ERR_IO, or DT_ERR_NOMEM), and no error of write, fsync or close goes unseen. */
#ifndef DT_BASE_FILE_H
#define DT_BASE_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/checksum.h"
#include "runtime/dtrun.h"

struct dt_dir {
    int fd;
    char path[PATH_MAX]; /* for messages */
};

/* Makes a directory and those above it, where they are missing. */
dt_result_t dt_dir_make(const char *path);
dt_result_t dt_dir_open(struct dt_dir *d, const char *path);
dt_result_t dt_dir_open_in(struct dt_dir *d, const struct dt_dir *parent, const char *name);
dt_result_t dt_dir_sync(const struct dt_dir *d);
void dt_dir_close(struct dt_dir *d);

/* Calls visit for each entry but "." and ".."; ends early when it returns an error. */
dt_result_t dt_dir_each(const struct dt_dir *d, dt_result_t (*visit)(void *arg, const char *name),
                        void *arg);
dt_result_t dt_dir_rename(const struct dt_dir *d, const char *from, const char *to);
/* Removes a file, or a directory of files; "first" dies before all others in it. It is no error
 * when there is none, or when someone else removes it at the same time. */
dt_result_t dt_dir_remove(const struct dt_dir *d, const char *name, const char *first);

/* A file that is written or read from one end to the other, and summed up on the way. */
struct dt_file {
    int fd;
    const struct dt_dir *dir;
    const char *name;
    struct dt_hasher *hasher;
};

dt_result_t dt_file_create(struct dt_file *f, const struct dt_dir *d, const char *name);
dt_result_t dt_file_open(struct dt_file *f, const struct dt_dir *d, const char *name,
                         uint64_t *bytes);
dt_result_t dt_file_write(struct dt_file *f, const void *data, size_t n);
/* Reads exactly n bytes; into nowhere when data is NULL. */
dt_result_t dt_file_read(struct dt_file *f, void *data, uint64_t n);
/* Makes what was written durable, and closes. */
dt_result_t dt_file_finish(struct dt_file *f);
void dt_file_close(struct dt_file *f); /* of a finished one: does nothing */

#endif
