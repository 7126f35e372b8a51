#include "launcher/agent/horovod/answer.h"

#include <stdio.h>

enum { STATUS_INSUFFICIENT_STORAGE = 507 };

static const struct {
    int status;
    const char *reason;
} reasons[] = {
    { 200, "OK" },
    { 400, "Bad Request" },
    { 404, "Not Found" },
    { 405, "Method Not Allowed" },
    { 411, "Length Required" },
    { 413, "Content Too Large" },
    { 414, "URI Too Long" },
    { 431, "Request Header Fields Too Large" },
    { 501, "Not Implemented" },
    { 505, "HTTP Version Not Supported" },
    { 507, "Insufficient Storage" },
};

const char *dt_answer_reason(int status)
{
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        if (reasons[i].status == status)
            return reasons[i].reason;
    }
    return "Error";
}

static int serve(struct dt_answer *a, struct dt_httprequest *r, struct dt_kvstore *s)
{
    uint8_t *body = r->body;

    if (r->progress == DT_HTTP_WRONG)
        return r->status;
    switch (r->method) {
    case DT_HTTP_PUT:
        r->body = NULL;
        return dt_kvstore_put(s, r->target, body, r->body_n) ? DT_ANSWER_OK
                                                             : STATUS_INSUFFICIENT_STORAGE;
    case DT_HTTP_GET:
        a->value = dt_kvstore_get(s, r->target);
        return a->value ? DT_ANSWER_OK : DT_ANSWER_NOT_FOUND;
    default:
        dt_kvstore_delete(s, r->target); /* repeating a delete is no error */
        return DT_ANSWER_OK;
    }
}

void dt_answer_make(struct dt_answer *a, struct dt_httprequest *r, struct dt_kvstore *s)
{
    *a = (struct dt_answer){ 0 };
    a->status = serve(a, r, s);
    /* Horovod's client recognises this header only in this spelling. */
    a->head_n =
        (size_t)snprintf(a->head, sizeof a->head,
                         "HTTP/1.1 %d %s\r\n"
                         "Content-Length: %zu\r\n"
                         "Connection: close\r\n\r\n",
                         a->status, dt_answer_reason(a->status), a->value ? a->value->n : 0);
}

void dt_answer_free(struct dt_answer *a)
{
    dt_kvvalue_release(a->value);
    a->value = NULL;
}
