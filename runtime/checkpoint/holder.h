/* A job's identity, as in the files OWNER and LINEAGE of a checkpoint directory. */
#ifndef DT_CHECKPOINT_HOLDER_H
#define DT_CHECKPOINT_HOLDER_H

#include <stdbool.h>

#include "runtime/checkpoint/names.h"

enum { DT_HOLDER_TEXT = 1024 };

struct dt_holder {
    char job[256];
    unsigned generation;
    char host[256]; /* of rank 0 */
    long pid;       /* its process there */
    char since[32];
};

/* The calling process, as rank 0 of its job. */
struct dt_holder dt_holder_of(const struct dt_owner *me, const char *host);
/* Write one line for each field, and read them back. False: the text is damaged, and h is empty. */
void dt_holder_write(char text[DT_HOLDER_TEXT], const struct dt_holder *h);
bool dt_holder_parse(const char *text, struct dt_holder *h);
bool dt_holder_is_job(const struct dt_holder *h, const char *job_id);

#endif
