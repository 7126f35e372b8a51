/* --push: files that every host receives before ranks start, over the same channel.
 *
 * The set is read once (mapped, not copied). Each host has a dt_push that feeds it as fast as its
 * link takes the bytes: the next pieces follow when the outbox has been sent, so memory stays
 * bounded. */
#ifndef DT_JOB_PUSH_H
#define DT_JOB_PUSH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/base/error.h"
#include "launcher/remote/link.h"
#include "runtime/wire/codec.h"

struct dt_push_file {
    char *path; /* as the user named it */
    char *name; /* its last component: what it is called on the hosts */
    const uint8_t *data;
    size_t size;
    uint32_t mode;
    uint64_t hash; /* XXH3-64 */
};

struct dt_push_set {
    struct dt_push_file *v;
    uint32_t n;
};

/* library (or NULL) is libdtrun's file: it goes along when one of the files names it. */
int dt_push_load(struct dt_push_set *set, const struct dt_strs *paths, const char *library,
                 struct dt_error *err);
void dt_push_free(struct dt_push_set *set);

struct dt_push { /* one host's progress; zero-initialise */
    const struct dt_push_set *set;
    uint32_t next; /* the file whose bytes are being sent */
    size_t offset; /* of it */
    bool begun;    /* its FILE has been sent */
    uint32_t done; /* files that the host has put in place */
    char *dir;     /* where they are on the host; NULL until the first is */
};

void dt_push_continue(struct dt_push *p, struct dt_link *link, const char *job_id);
/* Takes the host's word on one file. Fails when the host could not put it in place. */
int dt_push_on_done(struct dt_push *p, const struct dt_msg_file_done *m, struct dt_error *err);
bool dt_push_is_complete(const struct dt_push *p);

#endif
