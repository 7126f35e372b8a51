#include "launcher/agent/horovod/httprequest.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "launcher/base/mem.h"

enum {
    STATUS_BAD_REQUEST = 400,
    STATUS_METHOD_NOT_ALLOWED = 405,
    STATUS_LENGTH_REQUIRED = 411,
    STATUS_CONTENT_TOO_LARGE = 413,
    STATUS_URI_TOO_LONG = 414,
    STATUS_HEADERS_TOO_LARGE = 431,
    STATUS_NOT_IMPLEMENTED = 501,
    STATUS_VERSION_NOT_SUPPORTED = 505,
};

static const char end_of_line[] = "\r\n";
static const char end_of_head[] = "\r\n\r\n";

void dt_httprequest_init(struct dt_httprequest *r, size_t body_max)
{
    *r = (struct dt_httprequest){ .body_max = body_max };
}

void dt_httprequest_free(struct dt_httprequest *r)
{
    free(r->body);
    r->body = NULL;
}

/* ---- the request line ---- */

static int parse_method(struct dt_httprequest *r, const char *word, size_t n)
{
    static const struct {
        const char *name;
        enum dt_http_method method;
    } methods[] = { { "PUT", DT_HTTP_PUT }, { "GET", DT_HTTP_GET }, { "DELETE", DT_HTTP_DELETE } };

    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (strlen(methods[i].name) == n && memcmp(methods[i].name, word, n) == 0) {
            r->method = methods[i].method;
            return 0;
        }
    }
    return n ? STATUS_METHOD_NOT_ALLOWED : STATUS_BAD_REQUEST;
}

/* Parses "/SCOPE/KEY"; both must be non-empty and consist of visible characters. */
static int parse_target(struct dt_httprequest *r, const char *word, size_t n)
{
    const char *key;

    if (n >= sizeof r->target)
        return STATUS_URI_TOO_LONG;
    memcpy(r->target, word, n);
    r->target[n] = '\0';
    for (size_t i = 0; i < n; i++) {
        if (word[i] <= ' ' || word[i] > '~')
            return STATUS_BAD_REQUEST;
    }
    key = n ? strchr(r->target + 1, '/') : NULL;
    if (r->target[0] != '/' || !key || key == r->target + 1 || !key[1] || strchr(key + 1, '/'))
        return STATUS_BAD_REQUEST;
    return 0;
}

static int parse_version(const char *word)
{
    if (strcmp(word, "HTTP/1.1") == 0 || strcmp(word, "HTTP/1.0") == 0)
        return 0;
    return strncmp(word, "HTTP/", strlen("HTTP/")) == 0 ? STATUS_VERSION_NOT_SUPPORTED
                                                        : STATUS_BAD_REQUEST;
}

static int parse_request_line(struct dt_httprequest *r, const char *line)
{
    size_t method_n = strcspn(line, " ");
    const char *target = line + method_n + (line[method_n] == ' ');
    size_t target_n = strcspn(target, " ");
    int status = parse_version(target + target_n + (target[target_n] == ' '));

    if (!status)
        status = parse_method(r, line, method_n);
    return status ? status : parse_target(r, target, target_n);
}

/* ---- headers ---- */

struct headers {
    bool has_length;
    size_t length;
};

static int parse_length(struct headers *h, const char *value, size_t body_max)
{
    size_t length = 0;

    if (!*value)
        return STATUS_BAD_REQUEST;
    for (; *value >= '0' && *value <= '9'; value++) {
        if (length <= body_max) /* the exact value of a larger length does not matter */
            length = length * 10 + (size_t)(*value - '0');
    }
    if (*value || (h->has_length && h->length != length))
        return STATUS_BAD_REQUEST;
    h->has_length = true;
    h->length = length;
    return 0;
}

static int parse_header(struct headers *h, char *line, size_t body_max)
{
    size_t name_n = strcspn(line, ": \t");
    char *value = line + name_n + 1, *end;

    if (name_n == 0 || line[name_n] != ':')
        return STATUS_BAD_REQUEST;
    line[name_n] = '\0';
    value += strspn(value, " \t");
    for (end = value + strlen(value); end > value && (end[-1] == ' ' || end[-1] == '\t');)
        *--end = '\0';
    if (strcasecmp(line, "Content-Length") == 0)
        return parse_length(h, value, body_max);
    return strcasecmp(line, "Transfer-Encoding") == 0 ? STATUS_NOT_IMPLEMENTED : 0;
}

/* Cuts off the next line; returns NULL after the last one. */
static char *next_line(char **rest)
{
    char *line = *rest, *end = strstr(line, end_of_line);

    if (!end)
        return NULL;
    *end = '\0';
    *rest = end + strlen(end_of_line);
    return line;
}

/* head has n bytes and ends with an empty line. Returns 0, or the status for what is wrong. */
static int parse_head(struct dt_httprequest *r, size_t n)
{
    struct headers h = { 0 };
    char *rest = r->head, *line;
    int status;

    if (memchr(r->head, '\0', n))
        return STATUS_BAD_REQUEST;
    r->head[n - strlen(end_of_line)] = '\0';
    status = parse_request_line(r, next_line(&rest));
    while (!status && (line = next_line(&rest)))
        status = parse_header(&h, line, r->body_max);
    if (status)
        return status;
    if (h.length > r->body_max)
        return STATUS_CONTENT_TOO_LARGE;
    if (r->method == DT_HTTP_PUT && !h.has_length)
        return STATUS_LENGTH_REQUIRED;
    r->body_n = h.length;
    return 0;
}

/* ---- bytes ---- */

static enum dt_http_progress refuse_request(struct dt_httprequest *r, int status)
{
    r->status = status;
    return r->progress = DT_HTTP_WRONG;
}

/* Takes the bytes that belong to the head, and returns how many they are. */
static size_t input_head(struct dt_httprequest *r, const uint8_t *bytes, size_t n)
{
    size_t had = r->head_have, room = sizeof r->head - had, take = n < room ? n : room;
    size_t from = had < strlen(end_of_head) ? 0 : had - (strlen(end_of_head) - 1), head_n;
    const char *end;
    int status;

    memcpy(r->head + had, bytes, take);
    r->head_have += take;
    end = memmem(r->head + from, r->head_have - from, end_of_head, strlen(end_of_head));
    if (!end) {
        if (r->head_have == sizeof r->head)
            refuse_request(r, STATUS_HEADERS_TOO_LARGE);
        return take;
    }
    head_n = (size_t)(end - r->head) + strlen(end_of_head);
    r->head_have = head_n;
    r->head_is_complete = true;
    status = parse_head(r, head_n);
    if (status)
        refuse_request(r, status);
    else if (r->body_n)
        r->body = dt_xcalloc(r->body_n, 1);
    return head_n - had;
}

enum dt_http_progress dt_httprequest_input(struct dt_httprequest *r, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    size_t take = 0;

    if (r->progress != DT_HTTP_MORE)
        return r->progress;
    if (!r->head_is_complete)
        take = input_head(r, p, n);
    if (r->progress != DT_HTTP_MORE || !r->head_is_complete)
        return r->progress;
    p += take;
    n -= take;
    if (n > r->body_n - r->body_have)
        n = r->body_n - r->body_have;
    if (n)
        memcpy(r->body + r->body_have, p, n);
    r->body_have += n;
    if (r->body_have == r->body_n)
        r->progress = DT_HTTP_DONE;
    return r->progress;
}
