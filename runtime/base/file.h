/* Durable files and directories. Each function that fails names the file and the reason through
 * dt_fail (DT_ERR_IO or DT_ERR_NOMEM). Errors of write, fsync and close are never ignored. */
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

/* Makes a directory and its missing parents. */
dt_result_t dt_dir_make(const char *path);
dt_result_t dt_dir_open(struct dt_dir *d, const char *path);
dt_result_t dt_dir_open_in(struct dt_dir *d, const struct dt_dir *parent, const char *name);
dt_result_t dt_dir_sync(const struct dt_dir *d);
void dt_dir_close(struct dt_dir *d);

/* Calls visit for each entry except "." and "..". Stops when visit returns an error. */
dt_result_t dt_dir_each(const struct dt_dir *d, dt_result_t (*visit)(void *arg, const char *name),
                        void *arg);
dt_result_t dt_dir_rename(const struct dt_dir *d, const char *from, const char *to);
/* Removes a file, or a directory that contains only files, of which it removes "first" first. A
 * file that does not exist, or that another process removes meanwhile, is no error. */
dt_result_t dt_dir_remove(const struct dt_dir *d, const char *name, const char *first);

/* A file that is written or read sequentially, with a checksum of its data. */
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
/* Reads exactly n bytes; discards them if data is NULL. */
dt_result_t dt_file_read(struct dt_file *f, void *data, uint64_t n);
/* Syncs and closes the file. */
dt_result_t dt_file_finish(struct dt_file *f);
void dt_file_close(struct dt_file *f); /* does nothing after dt_file_finish */

#endif
