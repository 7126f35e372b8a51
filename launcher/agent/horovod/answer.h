/* What the rendezvous answers to a request. Pure. */
#ifndef DT_AGENT_HOROVOD_ANSWER_H
#define DT_AGENT_HOROVOD_ANSWER_H

#include "launcher/agent/horovod/httprequest.h"
#include "launcher/agent/horovod/kvstore.h"

/* Of status; NOT_FOUND: there is no such key. */
enum { DT_ANSWER_OK = 200, DT_ANSWER_NOT_FOUND = 404 };

struct dt_answer {
    int status;
    char head[160]; /* the status line and the headers, with the empty line; the value follows */
    size_t head_n;
    struct dt_kvvalue *value; /* NULL: there is no body */
};

/* Does what a complete or wrong request asks for; takes its body. */
void dt_answer_make(struct dt_answer *a, struct dt_httprequest *r, struct dt_kvstore *s);
const char *dt_answer_reason(int status); /* as in the status line */
void dt_answer_free(struct dt_answer *a);

#endif
