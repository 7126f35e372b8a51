/* What Horovod's rendezvous answers to requests given as bytes, and what happens to the store. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/agent/horovod/answer.h"
#include "tests/unit/unit.h"

enum { BODY_MAX = 64 };

static const struct dt_kvlimits limits = { .body = BODY_MAX, .keys = 4, .bytes = 200 };

static int open_store(void **state)
{
    *state = dt_kvstore_create(&limits);
    return 0;
}

static int close_store(void **state)
{
    dt_kvstore_destroy(*state);
    return 0;
}

/* --- requests --- */

struct request_case {
    const char *bytes;
    int status; /* 0: the request is valid */
    enum dt_http_method method;
    const char *target;
    const char *body;
};

static const struct request_case request_cases[] = {
    { "GET /global/rank_0 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", 0, DT_HTTP_GET,
      "/global/rank_0", "" },
    { "GET /global/rank_0 HTTP/1.1\r\n\r\n", 0, DT_HTTP_GET, "/global/rank_0", "" },
    { "GET /s/k HTTP/1.0\r\n\r\n", 0, DT_HTTP_GET, "/s/k", "" },
    { "DELETE /local_host1/1 HTTP/1.1\r\nHost: a\r\n\r\n", 0, DT_HTTP_DELETE, "/local_host1/1",
      "" },
    { "PUT /s/k HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 0, DT_HTTP_PUT, "/s/k", "abc" },
    { "PUT /s/k HTTP/1.1\r\ncontent-length:  3 \r\n\r\nabc", 0, DT_HTTP_PUT, "/s/k", "abc" },
    { "PUT /s/k HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 0, DT_HTTP_PUT,
      "/s/k", "abc" },
    { "PUT /s/k HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 0, DT_HTTP_PUT, "/s/k", "" },
    { "PUT /s/k HTTP/1.1\r\nContent-Length: 1\r\nA:\r\n\r\nxGET /s/k", 0, DT_HTTP_PUT, "/s/k",
      "x" },
    { "PUT /worker_addresses/host1:0 HTTP/1.1\r\nContent-Length: 2\r\n\r\n\r\n", 0, DT_HTTP_PUT,
      "/worker_addresses/host1:0", "\r\n" },
    { "POST /s/k HTTP/1.1\r\n\r\n", 405, 0, NULL, NULL },
    { "get /s/k HTTP/1.1\r\n\r\n", 405, 0, NULL, NULL },
    { "GETS /s/k HTTP/1.1\r\n\r\n", 405, 0, NULL, NULL },
    { " /s/k HTTP/1.1\r\n\r\n", 400, 0, NULL, NULL },
    { "\r\n\r\n", 400, 0, NULL, NULL },
    { "GET\r\n\r\n", 400, 0, NULL, NULL },
    { "GET /s/k\r\n\r\n", 400, 0, NULL, NULL },
    { "GET /s/k HTTP/1.1 \r\n\r\n", 505, 0, NULL, NULL },
    { "GET /s/k HTTP/2\r\n\r\n", 505, 0, NULL, NULL },
    { "GET /s/k FTP/1.1\r\n\r\n", 400, 0, NULL, NULL },
    { "GET  HTTP/1.1\r\n\r\n", 400, 0, NULL, NULL },
    { "GET s/k HTTP/1.1\r\n\r\n", 400, 0, NULL, NULL },
    { "GET /s HTTP/1.1\r\n\r\n", 400, 0, NULL, NULL },
    { "GET /s/ HTTP/1.1\r\n\r\n", 400, 0, NULL, NULL },
    { "GET //k HTTP/1.1\r\n\r\n", 400, 0, NULL, NULL },
    { "GET /s/k/l HTTP/1.1\r\n\r\n", 400, 0, NULL, NULL },
    { "GET /s/k\x7f HTTP/1.1\r\n\r\n", 400, 0, NULL, NULL },
    { "GET /s/\xc3\xa9 HTTP/1.1\r\n\r\n", 400, 0, NULL, NULL },
    { "GET /s/k HTTP/1.1\r\nno header\r\n\r\n", 400, 0, NULL, NULL },
    { "GET /s/k HTTP/1.1\r\n: empty\r\n\r\n", 400, 0, NULL, NULL },
    { "GET /s/k HTTP/1.1\r\n folded: 1\r\n\r\n", 400, 0, NULL, NULL },
    { "PUT /s/k HTTP/1.1\r\n\r\n", 411, 0, NULL, NULL },
    { "PUT /s/k HTTP/1.1\r\nContent-Length:\r\n\r\n", 400, 0, NULL, NULL },
    { "PUT /s/k HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400, 0, NULL, NULL },
    { "PUT /s/k HTTP/1.1\r\nContent-Length: 3x\r\n\r\n", 400, 0, NULL, NULL },
    { "PUT /s/k HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400, 0, NULL, NULL },
    { "PUT /s/k HTTP/1.1\r\nContent-Length: 65\r\n\r\n", 413, 0, NULL, NULL },
    { "PUT /s/k HTTP/1.1\r\nContent-Length: 18446744073709551617\r\n\r\n", 413, 0, NULL, NULL },
    { "GET /s/k HTTP/1.1\r\nContent-Length: 65\r\n\r\n", 413, 0, NULL, NULL },
    { "PUT /s/k HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 501, 0, NULL, NULL },
};

static void check_request(const struct request_case *c, size_t piece)
{
    struct dt_httprequest r;
    size_t n = strlen(c->bytes);
    enum dt_http_progress last = DT_HTTP_MORE;

    dt_httprequest_init(&r, BODY_MAX);
    for (size_t at = 0; at < n; at += piece) {
        enum dt_http_progress now =
            dt_httprequest_input(&r, c->bytes + at, n - at < piece ? n - at : piece);

        assert_true(last == DT_HTTP_MORE || now == last);
        last = now;
    }
    assert_int_equal(last, c->status ? DT_HTTP_WRONG : DT_HTTP_DONE);
    assert_int_equal(r.status, c->status);
    if (!c->status) {
        assert_int_equal(r.method, c->method);
        assert_string_equal(r.target, c->target);
        assert_int_equal(r.body_n, strlen(c->body));
        assert_memory_equal(r.body_n ? (const char *)r.body : "", c->body, r.body_n);
    }
    dt_httprequest_free(&r);
}

static void requests_may_arrive_in_pieces(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof request_cases / sizeof *request_cases; i++) {
        for (size_t piece = 1; piece <= strlen(request_cases[i].bytes); piece++)
            check_request(&request_cases[i], piece);
    }
}

static void no_request_is_complete_before_its_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof request_cases / sizeof *request_cases; i++) {
        const struct request_case *c = &request_cases[i];
        size_t head_n = (size_t)(strstr(c->bytes, "\r\n\r\n") + 4 - c->bytes);
        struct dt_httprequest r;

        dt_httprequest_init(&r, BODY_MAX);
        assert_int_equal(dt_httprequest_input(&r, c->bytes, head_n - 1), DT_HTTP_MORE);
        dt_httprequest_input(&r, c->bytes + head_n - 1, 1);
        for (size_t k = 0; !c->status && k < strlen(c->body); k++) {
            assert_int_equal(r.progress, DT_HTTP_MORE);
            dt_httprequest_input(&r, c->body + k, 1);
        }
        assert_int_not_equal(r.progress, DT_HTTP_MORE);
        dt_httprequest_free(&r);
    }
}

/* The request is prefix, then enough x to make it n bytes, then suffix. */
static int status_of_long(const char *prefix, size_t n, const char *suffix)
{
    struct dt_httprequest r;

    dt_httprequest_init(&r, BODY_MAX);
    dt_httprequest_input(&r, prefix, strlen(prefix));
    for (size_t i = strlen(prefix); i < n && r.progress == DT_HTTP_MORE; i++)
        dt_httprequest_input(&r, "x", 1);
    dt_httprequest_input(&r, suffix, strlen(suffix));
    dt_httprequest_free(&r);
    return r.progress == DT_HTTP_DONE ? 200 : r.status;
}

static void requests_that_are_too_long_are_refused(void **state)
{
    static const char version[] = " HTTP/1.1\r\n\r\n", line[] = "GET /s/k HTTP/1.1\r\nA: ";
    const size_t method = strlen("GET ");

    (void)state;
    assert_int_equal(status_of_long("GET /s/", method + DT_HTTP_TARGET_MAX - 1, version), 200);
    assert_int_equal(status_of_long("GET /s/", method + DT_HTTP_TARGET_MAX, version), 414);
    assert_int_equal(status_of_long(line, DT_HTTP_HEAD_MAX - 4, "\r\n\r\n"), 200);
    assert_int_equal(status_of_long(line, DT_HTTP_HEAD_MAX - 3, "\r\n\r\n"), 431);
    assert_int_equal(status_of_long(line, 10 * DT_HTTP_HEAD_MAX, "\r\n\r\n"), 431);
}

static void a_head_with_a_zero_byte_is_refused(void **state)
{
    static const char bytes[] = "GET /s/k HTTP/1.1\r\nA: \0\r\n\r\n";
    struct dt_httprequest r;

    (void)state;
    dt_httprequest_init(&r, BODY_MAX);
    assert_int_equal(dt_httprequest_input(&r, bytes, sizeof bytes - 1), DT_HTTP_WRONG);
    assert_int_equal(r.status, 400);
    dt_httprequest_free(&r);
}

/* --- answers --- */

/* Makes a whole exchange. Returns "STATUS body", or "STATUS" alone if there is no value. */
static const char *ask(struct dt_kvstore *s, const char *method, const char *key, const char *body)
{
    static char text[BODY_MAX + 8];
    char head[128], want[160];
    struct dt_httprequest r;
    struct dt_answer a;

    snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nContent-Length: %zu\r\n\r\n", method, key,
             strlen(body));
    dt_httprequest_init(&r, BODY_MAX);
    dt_httprequest_input(&r, head, strlen(head));
    dt_httprequest_input(&r, body, strlen(body));
    dt_answer_make(&a, &r, s);
    snprintf(text, sizeof text, "%d%s%.*s", a.status, a.value ? " " : "",
             a.value ? (int)a.value->n : 0,
             a.value && a.value->n ? (const char *)a.value->bytes : "");
    snprintf(want, sizeof want,
             "HTTP/1.1 %d %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", a.status,
             dt_answer_reason(a.status), a.value ? a.value->n : 0);
    assert_int_equal(a.head_n, strlen(want));
    assert_memory_equal(a.head, want, a.head_n);
    dt_answer_free(&a);
    dt_httprequest_free(&r);
    return text;
}

static void a_value_lives_from_put_to_delete(void **state)
{
    static const struct {
        const char *method, *key, *body, *answer;
    } steps[] = {
        { "GET", "/global/0", "", "404" },
        { "DELETE", "/global/0", "", "200" },
        { "PUT", "/global/0", "first", "200" },
        { "GET", "/global/0", "", "200 first" },
        { "GET", "/global/1", "", "404" },
        { "GET", "/globa/0", "", "404" },
        { "PUT", "/local_a/0", "", "200" },
        { "GET", "/local_a/0", "", "200 " },
        { "PUT", "/global/0", "second, which is longer", "200" },
        { "GET", "/global/0", "", "200 second, which is longer" },
        { "DELETE", "/global/0", "", "200" },
        { "GET", "/global/0", "", "404" },
        { "GET", "/local_a/0", "", "200 " },
        { "PUT", "/global/0", "third", "200" },
        { "GET", "/global/0", "ignored", "200 third" },
        { "PATCH", "/global/0", "", "405" },
    };

    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        assert_string_equal(ask(*state, steps[i].method, steps[i].key, steps[i].body),
                            steps[i].answer);
}

static void values_of_any_bytes_come_back_as_they_were(void **state)
{
    static const char put[] = "PUT /s/k HTTP/1.1\r\nContent-Length: 6\r\n\r\n\0\r\n\r\n\xff";
    static const char get[] = "GET /s/k HTTP/1.1\r\n\r\n";
    struct dt_httprequest r;
    struct dt_answer a;

    dt_httprequest_init(&r, BODY_MAX);
    assert_int_equal(dt_httprequest_input(&r, put, sizeof put - 1), DT_HTTP_DONE);
    dt_answer_make(&a, &r, *state);
    assert_int_equal(a.status, 200);
    dt_httprequest_free(&r);
    dt_httprequest_init(&r, BODY_MAX);
    dt_httprequest_input(&r, get, sizeof get - 1);
    dt_answer_make(&a, &r, *state);
    assert_int_equal(a.value->n, 6);
    assert_memory_equal(a.value->bytes, "\0\r\n\r\n\xff", 6);
    dt_answer_free(&a);
    dt_httprequest_free(&r);
}

static void an_answer_under_way_keeps_its_value(void **state)
{
    struct dt_kvvalue *v;

    assert_string_equal(ask(*state, "PUT", "/s/k", "old"), "200");
    v = dt_kvstore_get(*state, "/s/k");
    assert_string_equal(ask(*state, "PUT", "/s/k", "new"), "200");
    assert_string_equal(ask(*state, "DELETE", "/s/k", ""), "200");
    assert_int_equal(v->n, 3);
    assert_memory_equal(v->bytes, "old", 3);
    dt_kvvalue_release(v);
}

static void the_number_of_keys_is_bounded(void **state)
{
    assert_string_equal(ask(*state, "PUT", "/s/1", ""), "200");
    assert_string_equal(ask(*state, "PUT", "/s/2", ""), "200");
    assert_string_equal(ask(*state, "PUT", "/s/3", ""), "200");
    assert_string_equal(ask(*state, "PUT", "/s/4", ""), "200");
    assert_string_equal(ask(*state, "PUT", "/s/5", ""), "507");
    assert_string_equal(ask(*state, "GET", "/s/5", ""), "404");
    assert_string_equal(ask(*state, "PUT", "/s/4", "again"), "200");
    assert_string_equal(ask(*state, "DELETE", "/s/1", ""), "200");
    assert_string_equal(ask(*state, "PUT", "/s/5", ""), "200");
}

static void the_bytes_of_all_values_are_bounded(void **state)
{
    char body[BODY_MAX + 1] = "";

    memset(body, 'b', BODY_MAX); /* three bodies with their keys exceed the limit by 4 bytes */
    assert_string_equal(ask(*state, "PUT", "/a/b", body), "200");
    assert_string_equal(ask(*state, "DELETE", "/a/b", ""), "200");
    for (int i = 0; i < 2; i++) {
        assert_string_equal(ask(*state, "PUT", "/a/1", body), "200");
        assert_string_equal(ask(*state, "PUT", "/a/2", body), "200");
        assert_string_equal(ask(*state, "PUT", "/a/3", body + 4), "200");
        assert_string_equal(ask(*state, "PUT", "/a/4", "x"), "507");
        assert_string_equal(ask(*state, "PUT", "/a/3", body), "507");
        assert_string_equal(ask(*state, "PUT", "/a/3", body + 8), "200");
        assert_string_equal(ask(*state, "PUT", "/a/4", ""), "200");
        assert_string_equal(ask(*state, "DELETE", "/a/4", ""), "200");
    }
}

static void limits_follow_the_number_of_ranks(void **state)
{
    (void)state;
    for (uint32_t np = 1; np <= 1000000; np *= 10) {
        struct dt_kvlimits l = dt_kvlimits_of(np);

        assert_true(l.body >= 136u * np + 4096);
        assert_true(l.body <= 136u * np + 65536);
        assert_true(l.keys >= (size_t)np * 6 && l.keys <= (size_t)np * 4096);
        assert_true(l.bytes / np >= 3 * l.body && l.bytes / np <= 4 * l.body);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_store, close_store)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(requests_may_arrive_in_pieces),
        TEST(no_request_is_complete_before_its_end),
        TEST(requests_that_are_too_long_are_refused),
        TEST(a_head_with_a_zero_byte_is_refused),
        TEST(a_value_lives_from_put_to_delete),
        TEST(values_of_any_bytes_come_back_as_they_were),
        TEST(an_answer_under_way_keeps_its_value),
        TEST(the_number_of_keys_is_bounded),
        TEST(the_bytes_of_all_values_are_bounded),
        TEST(limits_follow_the_number_of_ranks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
