/* The connection below libssh2 when the system does not accept what is sent. */
#include "tests/unit/unit.h"

#include <stdlib.h>

#include "launcher/remote/sshsocket.h"

struct seen {
    int moved;
    int closed;
};

static void on_moved(void *arg)
{
    ((struct seen *)arg)->moved++;
}

static void on_closed(void *arg)
{
    ((struct seen *)arg)->closed++;
}

/* A socket that was never connected accepts nothing. libuv reports that before it writes. */
static void data_that_cannot_be_sent_at_once_breaks_the_connection(void **state)
{
    struct dt_sshsocket s = { 0 };
    struct seen seen = { 0 };
    uv_tcp_t *tcp = malloc(sizeof *tcp);
    uv_loop_t loop;

    (void)state;
    assert_non_null(tcp);
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(uv_tcp_init(&loop, tcp), 0);
    dt_sshsocket_take(&s, tcp, on_moved, on_closed, &seen);
    dt_bytequeue_add(&s.wire, "packet", 6);
    dt_sshsocket_flush(&s);
    assert_int_equal(seen.moved, 1);
    assert_true(s.hung_up);
    assert_true(s.error < 0);
    assert_int_equal(dt_sshsocket_pending(&s), 0);
    dt_sshsocket_close(&s);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(seen.closed, 1);
    assert_int_equal(seen.moved, 1);
    dt_sshsocket_free(&s);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_that_cannot_be_sent_at_once_breaks_the_connection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
