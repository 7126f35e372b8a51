/* One HTTP/1.1 request of Horovod's clients: PUT, GET or DELETE of /SCOPE/KEY. Pure: bytes come in,
 * in pieces of any size. A request that is too long or not one of these gets an error status. */
#ifndef DT_AGENT_HOROVOD_HTTPREQUEST_H
#define DT_AGENT_HOROVOD_HTTPREQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DT_HTTP_HEAD_MAX = 4096,  /* bytes of the request line and the headers */
    DT_HTTP_TARGET_MAX = 512, /* bytes of "/SCOPE/KEY", with the terminating null */
};

enum dt_http_method { DT_HTTP_PUT = 1, DT_HTTP_GET, DT_HTTP_DELETE };

enum dt_http_progress {
    DT_HTTP_MORE,  /* the request is not complete yet */
    DT_HTTP_DONE,  /* it is complete; later bytes are ignored */
    DT_HTTP_WRONG, /* it is wrong: answer with status */
};

struct dt_httprequest {
    enum dt_http_progress progress;
    int status; /* of a wrong request */
    enum dt_http_method method;
    char target[DT_HTTP_TARGET_MAX];
    uint8_t *body; /* body_n bytes, or NULL if there are none */
    size_t body_n;
    size_t body_max;
    size_t body_have;
    bool head_is_complete;
    size_t head_have;
    char head[DT_HTTP_HEAD_MAX];
};

void dt_httprequest_init(struct dt_httprequest *r, size_t body_max);
enum dt_http_progress dt_httprequest_input(struct dt_httprequest *r, const void *bytes, size_t n);
void dt_httprequest_free(struct dt_httprequest *r);

#endif
