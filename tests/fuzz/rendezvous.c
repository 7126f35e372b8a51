/* What arrives at the port of Horovod's rendezvous: any bytes, in pieces of any size. A request
 * begins where the previous one ended or was refused. */
#include <stdio.h>
#include <string.h>

#include "launcher/agent/horovod/answer.h"
#include "tests/fuzz/fuzz.h"

static const struct dt_kvlimits limits = { .body = 256, .keys = 8, .bytes = 1024 };

static void check_answer(const struct dt_answer *a)
{
    char length[64];

    REQUIRE(a->head_n < sizeof a->head);
    REQUIRE(memcmp(a->head, "HTTP/1.1 ", 9) == 0);
    REQUIRE(memcmp(a->head + a->head_n - 4, "\r\n\r\n", 4) == 0);
    snprintf(length, sizeof length, "\r\nContent-Length: %zu\r\n", a->value ? a->value->n : 0);
    REQUIRE(strstr(a->head, length));
    REQUIRE(strcmp(dt_answer_reason(a->status), "Error") != 0);
    REQUIRE(!a->value || (a->status == 200 && a->value->n <= limits.body));
}

/* Returns the number of bytes in the request. */
static size_t serve(struct dt_kvstore *store, const uint8_t *data, size_t n)
{
    size_t piece = 1 + data[0] % 61, at = 0;
    struct dt_httprequest r;
    struct dt_answer a;

    dt_httprequest_init(&r, limits.body);
    while (at < n && r.progress == DT_HTTP_MORE) {
        size_t take = n - at < piece ? n - at : piece;

        dt_httprequest_input(&r, data + at, take);
        at += take;
    }
    if (r.progress != DT_HTTP_MORE) {
        dt_answer_make(&a, &r, store);
        check_answer(&a);
        REQUIRE(r.progress == DT_HTTP_DONE || (a.status >= 400 && !a.value));
        dt_answer_free(&a);
    }
    dt_httprequest_free(&r);
    return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct dt_kvstore *store = dt_kvstore_create(&limits);

    for (size_t at = 0; at < n;)
        at += serve(store, data + at, n - at);
    dt_kvstore_destroy(store);
    return 0;
}
