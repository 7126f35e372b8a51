/* --push: files and directories that every host receives, over the same channel, before ranks
 * start.
 *
 * The set is read once for its checksums. Each host has a dt_push that sends bytes as fast as its
 * link takes them: the next chunks follow when earlier ones have left, so memory stays bounded.
 * Threads open and read the files, because their file system may hang. */
#ifndef DT_SESSION_PUSH_H
#define DT_SESSION_PUSH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "launcher/base/error.h"
#include "launcher/io/filereader.h"
#include "launcher/remote/link.h"
#include "runtime/wire/codec.h"

struct dt_push_file { /* a file, directory or symbolic link */
    char *path;       /* on this machine */
    char *name;       /* on the hosts, in the job's directory */
    char *target;     /* of a symbolic link, else NULL */
    mode_t mode;
    uint64_t size; /* of a file, else 0 */
    uint64_t hash; /* XXH3-64 of the content */
};

struct dt_push_set {
    struct dt_push_file *v; /* a directory precedes what is in it */
    uint32_t n;
    bool keep; /* hosts may use files that earlier jobs kept, and keep these */
};

/* library is libdtrun's file, or NULL. It is sent too if one of the files links it. */
int dt_push_load(struct dt_push_set *set, const struct dt_strs *paths, const char *library,
                 struct dt_error *err);
void dt_push_free(struct dt_push_set *set);

struct dt_push { /* one host's progress; the caller sets the first five members */
    const struct dt_push_set *set;
    uv_loop_t *loop;
    const char *job_id;
    void (*moved)(void *arg); /* a chunk was read, or could not be: dt_push_continue is due */
    void *arg;
    struct dt_link *link;         /* of the last dt_push_continue */
    uint32_t next;                /* the file whose bytes are being sent */
    uint64_t offset;              /* within that file */
    bool begun;                   /* FILE has been sent for it */
    struct dt_filereader *reader; /* of all files; NULL until the first one with content */
    bool reading;                 /* it is reading */
    struct dt_error failed;       /* why it cannot be read */
    uint32_t done;                /* number of files that the host has put in place */
    char *dir; /* the directory on the host; NULL until the first file is there */
};

/* Fails if a file can no longer be read. */
int dt_push_continue(struct dt_push *p, struct dt_link *link, struct dt_error *err);
/* The host answered for one file. Fails if the host could not put it in place. */
int dt_push_on_done(struct dt_push *p, const struct dt_msg_file_done *m, struct dt_error *err);
bool dt_push_is_complete(const struct dt_push *p);
void dt_push_end(struct dt_push *p); /* frees what p holds, but not the set */

#endif
