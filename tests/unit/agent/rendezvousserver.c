/* Horovod's rendezvous server and its clients, all in this process and on loopback. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "launcher/agent/horovod/rendezvous.h"
#include "runtime/wire/inet.h"
#include "tests/unit/unit.h"

enum {
    WATCHDOG_S = 120,
    PLACES_OF_ONE = 18, /* clients at a time if np is 1 */
    LOOK_MS = 10,
    LOOKS_MS = 9000,
};

static time_t later_s; /* how far the server's clock is ahead */
/* The clock advances only when the server looks at it, and in all by less than the time after which
 * a silent client is given up. */
static bool stands;
static long looks_ms;

int clock_gettime(clockid_t clock, struct timespec *t)
{
    long rc = syscall(SYS_clock_gettime, clock, t);

    if (clock == CLOCK_BOOTTIME && stands) {
        looks_ms += looks_ms < LOOKS_MS ? LOOK_MS : 0;
        *t = (struct timespec){ looks_ms / 1000, looks_ms % 1000 * 1000000 };
    } else if (clock == CLOCK_BOOTTIME) {
        t->tv_sec += later_s;
    }
    return (int)rc;
}

struct server {
    uv_loop_t loop;
    struct dt_rendezvous *r;
    int overflows;
};

static void on_overflow(void *arg, const char *text)
{
    assert_non_null(strstr(text, "Content Too Large"));
    ((struct server *)arg)->overflows++;
}

static void open_server(struct server *s, uint32_t np)
{
    static const struct dt_rendezvous_events events = { on_overflow };

    *s = (struct server){ 0 };
    assert_int_equal(uv_loop_init(&s->loop), 0);
    s->r = dt_rendezvous_create(&s->loop, np, &events, s);
    assert_non_null(s->r);
    dt_rendezvous_open(s->r, "127.0.0.1");
}

static void close_server(struct server *s)
{
    dt_rendezvous_destroy(s->r);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
}

static int call(const struct server *s, const char *request)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons(dt_rendezvous_port(s->r)),
                              .sin_addr = { htonl(INADDR_LOOPBACK) } };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(send(fd, request, strlen(request), 0), strlen(request));
    return fd;
}

/* Reads up to n bytes, or to the end, while the server runs. */
static size_t read_some(struct server *s, int fd, char *bytes, size_t n)
{
    size_t have = 0;

    while (have < n) {
        ssize_t got = recv(fd, bytes + have, n - have, MSG_DONTWAIT);

        if (got == 0)
            break;
        if (got > 0)
            have += (size_t)got;
        else
            uv_run(&s->loop, UV_RUN_ONCE);
    }
    return have;
}

/* Returns the status of the answer. 0: the connection was closed without an answer. */
static int status_of(struct server *s, int fd)
{
    char answer[256] = "";

    read_some(s, fd, answer, sizeof answer - 1);
    close(fd);
    return *answer ? atoi(answer + strlen("HTTP/1.1 ")) : 0;
}

/* Makes a request that is answered at once, when everything sent before it has been read. */
static void pass_the_time(struct server *s)
{
    assert_int_equal(status_of(s, call(s, "DELETE /s/none HTTP/1.1\r\n\r\n")), 200);
}

static bool has_no_answer(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_DONTWAIT) < 0;
}

static void silent_clients_give_way(void **state)
{
    static const char half[] = "PUT /s/k HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc";
    int silent[3 * PLACES_OF_ONE];
    struct server s;

    (void)state;
    stands = true;
    open_server(&s, 1);
    for (int i = 0; i < 3 * PLACES_OF_ONE; i++)
        silent[i] = call(&s, i % 2 ? half : "");
    for (int i = 0; i < 5; i++)
        pass_the_time(&s);
    for (int i = 0; i < 3 * PLACES_OF_ONE; i++)
        close(silent[i]);
    close_server(&s);
    stands = false;
}

static void a_client_that_stops_is_given_up_after_ten_seconds(void **state)
{
    struct server s;
    char byte;
    int fd;

    (void)state;
    open_server(&s, 1);
    fd = call(&s, "PUT /s/k HTTP/1.1\r\nContent-Length: 2\r\n\r\na");
    pass_the_time(&s);
    later_s += 9;
    pass_the_time(&s);
    assert_int_equal(send(fd, "b", 1, 0), 1); /* in time, whatever other clients waited for */
    assert_int_equal(status_of(&s, fd), 200);
    fd = call(&s, "PUT /s/k HTTP/1.1\r\n");
    assert_int_equal(status_of(&s, call(&s, "GET /s/k HTTP/1.1\r\n\r\n")), 200);
    later_s += 11;
    assert_int_equal(read_some(&s, fd, &byte, 1), 0);
    close(fd);
    close_server(&s);
}

static void a_client_that_trickles_is_given_up_after_a_minute(void **state)
{
    struct server s;
    char byte;
    int fd;

    (void)state;
    open_server(&s, 1);
    fd = call(&s, "PUT /s/k HTTP/1.1\r\nContent-Length: 100\r\n\r\n");
    for (int i = 0; i < 6; i++) {
        pass_the_time(&s);
        assert_true(has_no_answer(fd));
        later_s += 9;
        assert_int_equal(send(fd, "x", 1, 0), 1);
    }
    later_s += 7;
    assert_int_equal(read_some(&s, fd, &byte, 1), 0);
    close(fd);
    close_server(&s);
}

static const char get_k[] = "GET /s/k HTTP/1.1\r\n\r\n";
static const char put_k[] = "PUT /s/k HTTP/1.1\r\nContent-Length: 1\r\n\r\nv";

static void a_get_of_a_missing_key_is_answered_when_the_key_comes(void **state)
{
    enum { WAITING = 3 };
    struct server s;
    int waiting[WAITING], other;
    char answer[256] = "";
    size_t n;

    (void)state;
    open_server(&s, 4);
    for (int i = 0; i < WAITING; i++)
        waiting[i] = call(&s, get_k);
    other = call(&s, "GET /s/other HTTP/1.1\r\n\r\n");
    pass_the_time(&s);
    for (int i = 0; i < WAITING; i++)
        assert_true(has_no_answer(waiting[i]));
    close(waiting[0]); /* a client that has gone takes no place */
    assert_int_equal(status_of(&s, call(&s, put_k)), 200);
    n = read_some(&s, waiting[1], answer, sizeof answer - 1);
    assert_memory_equal(answer, "HTTP/1.1 200 ", strlen("HTTP/1.1 200 "));
    assert_int_equal(answer[n - 1], 'v');
    assert_int_equal(status_of(&s, waiting[2]), 200);
    assert_true(has_no_answer(other));
    close(waiting[1]);
    close(other);
    close_server(&s);
}

static void a_key_that_does_not_come_is_not_found_after_a_second(void **state)
{
    struct server s;
    int fd;

    (void)state;
    open_server(&s, 1);
    fd = call(&s, get_k);
    pass_the_time(&s);
    assert_true(has_no_answer(fd));
    later_s += 2;
    assert_int_equal(status_of(&s, fd), 404);
    assert_int_equal(status_of(&s, call(&s, put_k)), 200);
    assert_int_equal(status_of(&s, call(&s, get_k)), 200);
    close_server(&s);
}

static void a_client_that_closes_its_side_does_not_wait(void **state)
{
    struct server s;
    int fd;

    (void)state;
    open_server(&s, 1);
    fd = call(&s, get_k);
    pass_the_time(&s);
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    assert_int_equal(status_of(&s, fd), 404);
    close_server(&s);
}

/* The clients that waited longest are answered first, each with its own answer. */
static void waiting_clients_give_way(void **state)
{
    int waiting[2 * PLACES_OF_ONE];
    struct server s;

    (void)state;
    open_server(&s, 1);
    for (int i = 0; i < 2 * PLACES_OF_ONE; i++)
        waiting[i] = call(&s, get_k);
    pass_the_time(&s);
    for (int i = 0; i <= PLACES_OF_ONE; i++)
        assert_int_equal(status_of(&s, waiting[i]), 404);
    assert_true(has_no_answer(waiting[2 * PLACES_OF_ONE - 1]));
    assert_int_equal(status_of(&s, call(&s, put_k)), 200);
    assert_int_equal(status_of(&s, waiting[2 * PLACES_OF_ONE - 1]), 200);
    for (int i = PLACES_OF_ONE + 1; i < 2 * PLACES_OF_ONE - 1; i++)
        close(waiting[i]);
    close_server(&s);
}

static void a_server_ends_with_clients_in_every_stage(void **state)
{
    struct server s;
    int asking, answered, waiting;
    char byte;

    (void)state;
    open_server(&s, 1);
    asking = call(&s, "PUT /s/k HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc");
    waiting = call(&s, get_k);
    answered = call(&s, "DELETE /s/k HTTP/1.1\r\n\r\n");
    assert_int_equal(read_some(&s, answered, &byte, 1), 1);
    close_server(&s);
    assert_int_equal(recv(asking, &byte, 1, 0), 0);
    assert_int_equal(recv(waiting, &byte, 1, 0), 0);
    close(waiting);
    close(asking);
    close(answered);
}

/* A value that is larger than socket buffers is sent in pieces, as it was when it was requested. */
static void a_slow_reader_gets_its_value_whole(void **state)
{
    enum { NP = 100000, N = 8 << 20 };
    static char value[N], got[N + 256];
    char head[64];
    struct server s;
    int fd, reader;
    size_t n;

    (void)state;
    for (size_t i = 0; i < N; i++)
        value[i] = (char)(i * 7 + (i >> 11));
    open_server(&s, NP);
    snprintf(head, sizeof head, "PUT /s/k HTTP/1.1\r\nContent-Length: %d\r\n\r\n", N);
    fd = call(&s, head);
    for (size_t at = 0; at < N;) {
        ssize_t sent = send(fd, value + at, N - at, MSG_DONTWAIT);

        if (sent > 0)
            at += (size_t)sent;
        else
            uv_run(&s.loop, UV_RUN_ONCE);
    }
    assert_int_equal(status_of(&s, fd), 200);
    reader = call(&s, "GET /s/k HTTP/1.1\r\n\r\n");
    assert_int_equal(read_some(&s, reader, got, 1), 1);
    assert_int_equal(status_of(&s, call(&s, "DELETE /s/k HTTP/1.1\r\n\r\n")), 200);
    n = 1 + read_some(&s, reader, got + 1, sizeof got - 1);
    assert_true(n > N);
    assert_memory_equal(got + n - N, value, N);
    close(reader);
    close_server(&s);
}

static void a_value_that_is_too_large_is_refused_and_reported_once(void **state)
{
    static const char request[] = "PUT /s/k HTTP/1.1\r\nContent-Length: 1000000\r\n\r\nabc";
    struct server s;

    (void)state;
    open_server(&s, 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(status_of(&s, call(&s, request)), 413);
    assert_int_equal(s.overflows, 1);
    close_server(&s);
}

static void a_connection_knows_its_own_address(void **state)
{
    static const struct {
        const char *addr;
        bool is;
    } cases[] = { { "127.0.0.1", true },
                  { "127.0.0.2", false },
                  { "::1", false },
                  { "localhost", false },
                  { "", false } };
    uint16_t port;
    int listener = dt_inet_listen(&port), caller = dt_inet_connect("127.0.0.1", port), fd;

    (void)state;
    while ((fd = accept(listener, NULL, NULL)) < 0)
        continue;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(dt_inet_is_at(fd, cases[i].addr), cases[i].is);
        assert_int_equal(dt_inet_is_at(caller, cases[i].addr), cases[i].is);
    }
    close(fd);
    close(caller);
    close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silent_clients_give_way),
        cmocka_unit_test(a_client_that_stops_is_given_up_after_ten_seconds),
        cmocka_unit_test(a_client_that_trickles_is_given_up_after_a_minute),
        cmocka_unit_test(a_get_of_a_missing_key_is_answered_when_the_key_comes),
        cmocka_unit_test(a_key_that_does_not_come_is_not_found_after_a_second),
        cmocka_unit_test(a_client_that_closes_its_side_does_not_wait),
        cmocka_unit_test(waiting_clients_give_way),
        cmocka_unit_test(a_server_ends_with_clients_in_every_stage),
        cmocka_unit_test(a_slow_reader_gets_its_value_whole),
        cmocka_unit_test(a_value_that_is_too_large_is_refused_and_reported_once),
        cmocka_unit_test(a_connection_knows_its_own_address),
    };

    alarm(WATCHDOG_S);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
