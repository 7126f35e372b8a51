/* The listener that the communicators of a process share, and the connections that it accepts, on
 * loopback. One process plays both sides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/wire/inet.h"
#include "runtime/world/listener.h"
#include "tests/unit/checks.h"

enum { ME = 5, GENERATION = 3, PATIENCE = 180000, GLANCE = 10 };

static const uint8_t secret[DT_SECRET_BYTES] = { 1, 2, 3 };

static struct dt_listener listener;
static uint16_t port;
static unsigned turns; /* how often a thread has looked for connections */

static int setup(void **state)
{
    (void)state;
    dt_listener_init(&listener);
    assert_int_equal(dt_listener_open(&listener, &port), 0);
    dt_listener_admit(&listener, secret, GENERATION, ME);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    dt_listener_close(&listener);
    assert_int_equal(listener.listener, -1);
    return 0;
}

static struct dt_auth caller(uint32_t rank, uint64_t comm)
{
    struct dt_auth a = { .generation = GENERATION, .me = rank, .peer = ME, .comm = comm };

    memcpy(a.secret, secret, sizeof secret);
    return a;
}

static void turn(const struct dt_handshake *s)
{
    struct pollfd p[DT_LISTENER_POLLS + 1];
    size_t n = dt_listener_polls(&listener, p);

    p[n++] = (struct pollfd){ .fd = s->fd, .events = s->sending ? POLLOUT : POLLIN };
    poll(p, n, GLANCE);
    dt_listener_turn(&listener);
    turns++;
}

/* Returns a connection, or -1 if the listener does not answer. */
static int call(const struct dt_auth *a)
{
    struct dt_handshake s;
    enum dt_verdict verdict;
    int fd = dt_inet_connect("127.0.0.1", port);

    assert_true(fd >= 0);
    dt_handshake_call(&s, fd, a);
    while ((verdict = dt_handshake_calling(&s, a)) == DT_SHAKE_PENDING)
        turn(&s);
    if (verdict == DT_SHAKE_THROUGH)
        return fd;
    close(fd);
    return -1;
}

static void expect_pair(int ours, int theirs)
{
    char c = 0;

    assert_true(ours >= 0 && theirs >= 0);
    assert_int_equal(send(theirs, "x", 1, MSG_NOSIGNAL), 1);
    assert_int_equal(poll(&(struct pollfd){ ours, POLLIN, 0 }, 1, PATIENCE), 1);
    assert_int_equal(recv(ours, &c, 1, 0), 1);
    assert_int_equal(c, 'x');
    close(ours);
    close(theirs);
}

static void expect_end(int theirs)
{
    char c;

    assert_int_equal(poll(&(struct pollfd){ theirs, POLLIN, 0 }, 1, PATIENCE), 1);
    assert_true(recv(theirs, &c, 1, 0) <= 0);
    close(theirs);
}

static void callers_wait_until_their_communicator_exists(void **state)
{
    struct dt_auth a = caller(1, 0), b = caller(2, 0), c = caller(1, 77);
    int first, second, third;

    (void)state;
    first = call(&a);
    second = call(&b);
    third = call(&c);
    assert_int_equal(dt_listener_take(&listener, 77, 0, 2), -1);
    assert_int_equal(dt_listener_take(&listener, 78, 0, 1), -1);
    assert_int_equal(dt_listener_take(&listener, 77, 1, 1), -1);
    expect_pair(dt_listener_take(&listener, 77, 0, 1), third);
    expect_pair(dt_listener_take(&listener, 0, 0, 2), second);
    expect_pair(dt_listener_take(&listener, 0, 0, 1), first);
    assert_int_equal(dt_listener_take(&listener, 0, 0, 1), -1);
}

static void the_newer_call_of_a_rank_counts(void **state)
{
    struct dt_auth a = caller(1, 9);
    int older, newer;

    (void)state;
    older = call(&a);
    newer = call(&a);
    expect_end(older);
    expect_pair(dt_listener_take(&listener, 9, 0, 1), newer);
}

static void a_freed_communicator_is_forgotten(void **state)
{
    struct dt_auth gone = caller(1, 9), kept = caller(1, 10);
    int first, second;

    (void)state;
    first = call(&gone);
    second = call(&kept);
    dt_listener_forget(&listener, 9);
    expect_end(first);
    assert_int_equal(dt_listener_take(&listener, 9, 0, 1), -1);
    expect_pair(dt_listener_take(&listener, 10, 0, 1), second);
}

static void strangers_are_refused(void **state)
{
    struct dt_auth a;

    (void)state;
    a = caller(1, 0);
    a.generation--;
    assert_int_equal(call(&a), -1);
    a = caller(1, 0);
    a.peer++;
    assert_int_equal(call(&a), -1);
    a = caller(1, 0);
    a.purpose = DT_AUTH_AGENTS;
    assert_int_equal(call(&a), -1);
    a = caller(1, 0);
    a.secret[0]++;
    assert_int_equal(call(&a), -1);
    assert_int_equal(listener.n_accepted, 0);
}

static int connect_to_listener(void)
{
    int fd = dt_inet_connect("127.0.0.1", port);

    assert_true(fd >= 0);
    assert_int_equal(poll(&(struct pollfd){ fd, POLLOUT, 0 }, 1, PATIENCE), 1);
    return fd;
}

/* A caller has recorded the hello of a rank, but does not know the secret. It does not check the
 * listener's proof and makes up its own. */
static void a_made_up_proof_is_refused(void **state)
{
    const struct dt_auth a = caller(1, 0);
    struct dt_handshake s = { .fd = connect_to_listener() };
    uint8_t hello[DT_AUTH_HELLO], answer[DT_AUTH_ANSWER], proof[DT_AUTH_PROOF] = { 0 };

    (void)state;
    dt_auth_hello(&a, hello);
    assert_int_equal(send(s.fd, hello, sizeof hello, MSG_NOSIGNAL), sizeof hello);
    while (recv(s.fd, answer, sizeof answer, MSG_PEEK) < (ssize_t)sizeof answer)
        turn(&s);
    assert_int_equal(recv(s.fd, answer, sizeof answer, 0), sizeof answer);
    assert_int_equal(send(s.fd, proof, sizeof proof, MSG_NOSIGNAL), sizeof proof);
    while (recv(s.fd, answer, 1, MSG_PEEK) < 0 && errno == EAGAIN)
        turn(&s);
    expect_end(s.fd);
    assert_int_equal(dt_listener_take(&listener, 0, 0, 1), -1);
}

/* More callers than there is room for. They know what a hello looks like, but not the secret, or
 * send only a part of it. One look sends them away, without the moment that silent ones have. */
static void callers_with_a_wrong_hello_keep_no_others_out(size_t bytes)
{
    enum { CROWD = 3 * DT_LISTENER_PENDING, TURNS = 8 };
    struct dt_auth wrong = caller(1, 0), a = wrong;
    uint8_t hello[DT_AUTH_HELLO];
    int crowd[CROWD], fd;

    wrong.secret[0]++;
    dt_auth_hello(&wrong, hello);
    for (int i = 0; i < CROWD; i++) {
        crowd[i] = connect_to_listener();
        assert_int_equal(send(crowd[i], hello, bytes, MSG_NOSIGNAL), bytes);
    }
    turns = 0;
    fd = call(&a);
    assert_in_range(turns, 1, TURNS);
    expect_pair(dt_listener_take(&listener, 0, 0, 1), fd);
    for (int i = 0; i < CROWD; i++)
        close(crowd[i]);
}

static void callers_without_the_secret_keep_no_others_out(void **state)
{
    (void)state;
    callers_with_a_wrong_hello_keep_no_others_out(DT_AUTH_HELLO);
}

static void callers_with_a_part_of_a_hello_keep_no_others_out(void **state)
{
    (void)state;
    callers_with_a_wrong_hello_keep_no_others_out(1);
}

/* More silent callers than there is room for keep others out only for a moment. */
static void silent_callers_keep_no_others_out(void **state)
{
    struct dt_auth a = caller(1, 0);
    int silent[DT_LISTENER_PENDING + 8], fd;

    (void)state;
    for (int i = 0; i < DT_LISTENER_PENDING + 8; i++) {
        silent[i] = dt_inet_connect("127.0.0.1", port);
        assert_true(silent[i] >= 0);
    }
    fd = call(&a);
    expect_pair(dt_listener_take(&listener, 0, 0, 1), fd);
    for (int i = 0; i < DT_LISTENER_PENDING + 8; i++)
        close(silent[i]);
}

static void expect_keepalive(int fd)
{
    int on = 0, idle_s = 0;
    socklen_t len = sizeof on;

    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, &len), 0);
    assert_int_equal(on, 1);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, &len), 0);
    assert_int_equal(idle_s, DT_HANDSHAKE_IDLE_S);
}

/* Otherwise a firewall forgets it. */
static void the_kernel_probes_idle_connections(void **state)
{
    struct dt_auth a = caller(1, 0);
    int theirs = call(&a), ours = dt_listener_take(&listener, 0, 0, 1);

    (void)state;
    expect_keepalive(theirs);
    expect_keepalive(ours);
    expect_pair(ours, theirs);
}

/* As behind a firewall that drops packets: the listener's queue is full, so nothing answers. */
static void a_call_that_nothing_answers_is_not_connected(void **state)
{
    struct dt_auth a = caller(1, 0);
    struct dt_handshake s;
    struct pollfd p = { .events = POLLOUT };
    int first;

    (void)state;
    assert_int_equal(listen(listener.listener, 0), 0);
    first = dt_inet_connect("127.0.0.1", port);
    p.fd = dt_inet_connect("127.0.0.1", port);
    assert_true(first >= 0 && p.fd >= 0);
    assert_int_equal(poll(&p, 1, 0), 0);
    dt_handshake_call(&s, p.fd, &a);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(dt_handshake_calling(&s, &a), DT_SHAKE_PENDING);
        assert_false(dt_handshake_is_connected(&s));
        assert_true(s.sending);
    }
    close(first);
    close(p.fd);
}

/* How long ago this end of a connection last received data, according to its kernel. */
static unsigned quiet_ms(int fd)
{
    struct tcp_info info = { 0 };
    socklen_t len = sizeof info;

    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
    return info.tcpi_state == TCP_ESTABLISHED ? info.tcpi_last_ack_recv : 0;
}

/* They had their time to speak while no thread looked. One look sends all of them away. (Their
 * number is that of the shortest usual queue of a listener.) */
static void many_silent_callers_are_sent_away_at_once(void **state)
{
    enum { CROWD = 3 * DT_LISTENER_PENDING, SILENT_MS = 1000, TURNS = 8, GUEST_MS = 5000 };
    struct dt_auth a = caller(1, 0);
    struct pollfd p[DT_LISTENER_POLLS];
    int64_t began = dt_clock_ms();
    int silent[CROWD], fd;
    size_t polls;

    (void)state;
    for (int i = 0; i < CROWD; i++) {
        silent[i] = dt_inet_connect("127.0.0.1", port);
        assert_true(silent[i] >= 0);
    }
    while (quiet_ms(silent[CROWD - 1]) < SILENT_MS)
        poll(NULL, 0, GLANCE);
    turns = 0;
    fd = call(&a);
    assert_in_range(turns, 1, TURNS);
    expect_pair(dt_listener_take(&listener, 0, 0, 1), fd);
    polls = dt_listener_polls(&listener, p);
    /* The last of them still wait, unless this process stood still for seconds. */
    assert_true(polls > 1 || dt_clock_ms() - began >= GUEST_MS);
    dt_listener_leave(&listener);
    assert_int_equal(dt_listener_polls(&listener, p), 1);
    for (int i = 0; i < CROWD; i++)
        close(silent[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(callers_wait_until_their_communicator_exists, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_newer_call_of_a_rank_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(a_freed_communicator_is_forgotten, setup, teardown),
        cmocka_unit_test_setup_teardown(the_kernel_probes_idle_connections, setup, teardown),
        cmocka_unit_test_setup_teardown(a_call_that_nothing_answers_is_not_connected, setup,
                                        teardown),
        CHECKS_SETUP_TEARDOWN("34, 35", strangers_are_refused, setup, teardown),
        CHECKS_SETUP_TEARDOWN("35", a_made_up_proof_is_refused, setup, teardown),
        CHECKS_SETUP_TEARDOWN("35", callers_without_the_secret_keep_no_others_out, setup, teardown),
        CHECKS_SETUP_TEARDOWN("35", callers_with_a_part_of_a_hello_keep_no_others_out, setup,
                              teardown),
        CHECKS_SETUP_TEARDOWN("35", silent_callers_keep_no_others_out, setup, teardown),
        CHECKS_SETUP_TEARDOWN("35", many_silent_callers_are_sent_away_at_once, setup, teardown),
    };

    alarm(300); /* a watchdog */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
