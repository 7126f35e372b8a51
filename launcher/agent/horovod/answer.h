/* The answers of the rendezvous to requests. Pure. */
#ifndef DT_AGENT_HOROVOD_ANSWER_H
#define DT_AGENT_HOROVOD_ANSWER_H

#include "launcher/agent/horovod/httprequest.h"
#include "launcher/agent/horovod/kvstore.h"

/* Values of status. NOT_FOUND: there is no such key. */
enum { DT_ANSWER_OK = 200, DT_ANSWER_NOT_FOUND = 404 };

struct dt_answer {
    int status;
    char head[160]; /* the status line, the headers and an empty line; the value follows */
    size_t head_n;
    struct dt_kvvalue *value; /* NULL: there is no body */
};

/* Performs a complete request, or answers a wrong one. Takes over its body. */
void dt_answer_make(struct dt_answer *a, struct dt_httprequest *r, struct dt_kvstore *s);
const char *dt_answer_reason(int status); /* as in the status line */
void dt_answer_free(struct dt_answer *a);

#endif
