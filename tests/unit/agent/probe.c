/* Agents that try to reach each other, all in this process and on loopback. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "launcher/agent/probe/probe.h"
#include "launcher/agent/probe/probepath.h"
#include "launcher/base/clock.h"
#include "runtime/wire/frame.h"
#include "runtime/wire/inet.h"
#include "tests/unit/unit.h"

enum { AGENTS = 2, WATCHDOG_S = 300, FEW_FILES = 200, CROWD = FEW_FILES / 2 };

struct agent {
    struct dt_probe *probe;
    uint16_t port;
    struct dt_channel *channel;
    int far_end; /* of its channel */
    uv_poll_t poll;
    size_t seen; /* bytes of the marker line that have arrived */
    struct dt_unframe unframe;
    bool answered;
    union dt_msg reach;
};

/* An agent lives as long as its process. Each test makes two agents, which stay. */
static struct world {
    uv_loop_t loop;
    struct agent agents[AGENTS];
} worlds[16], *now = worlds;

static void ignore(void *arg)
{
    (void)arg;
}

static void gone(void *arg, const char *why)
{
    (void)arg;
    fail_msg("the channel is gone: %s", why);
}

static int take(void *arg, uint8_t type, const uint8_t *payload, size_t n)
{
    struct agent *a = arg;

    assert_int_equal(type, DT_MSG_REACH);
    assert_false(a->answered);
    assert_int_equal(dt_msg_decode(type, payload, n, &a->reach), 0);
    a->answered = true;
    return 0;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    static const size_t marker = sizeof "DTRUN-AGENT 1\n" - 1;
    struct agent *a = poll->data;
    uint8_t bytes[4096];
    ssize_t n = read(a->far_end, bytes, sizeof bytes);
    size_t skip = marker - a->seen;
    const char *why;

    (void)status;
    (void)events;
    assert_true(n > 0);
    skip = skip < (size_t)n ? skip : (size_t)n;
    a->seen += skip;
    assert_int_equal(dt_unframe_feed(&a->unframe, bytes + skip, (size_t)n - skip, take, a, &why),
                     0);
}

static struct dt_channel *open_channel(struct agent *a)
{
    static const struct dt_channel_events events = { .heard = ignore,
                                                     .room = ignore,
                                                     .gone = gone };
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    a->far_end = ends[0];
    uv_poll_init(&now->loop, &a->poll, a->far_end);
    a->poll.data = a;
    uv_poll_start(&a->poll, UV_READABLE, on_readable);
    a->channel = dt_channel_open(&now->loop, ends[1], dup(ends[1]), &events, a, NULL);
    return a->channel;
}

struct wish {
    uint32_t node; /* the target's */
    uint16_t port; /* 0: the other agent's port */
    const char *addrs[4];
    uint8_t secret;
    uint8_t all;
};

static void begin(uint32_t node, const struct wish *w)
{
    struct agent *a = &now->agents[node];
    struct dt_msg_target *t = calloc(1, sizeof *t);
    struct dt_msg_probe m = {
        .generation = 3, .node = node, .all = w->all, .bytes = DT_REACH_BYTES, .targets = { t, 1 }
    };

    memset(m.secret, w->secret, sizeof m.secret);
    t->node = w->node;
    t->port = w->port ? w->port : now->agents[!node].port;
    for (size_t i = 0; w->addrs[i]; i++)
        dt_strs_add(&t->addrs, w->addrs[i]);
    a->answered = false;
    dt_probe_begin(a->probe, open_channel(a), &m);
}

static void until_answered(uint32_t node)
{
    while (!now->agents[node].answered)
        uv_run(&now->loop, UV_RUN_ONCE);
}

/* Checks that the n results in an agent's answer have these states. */
static void expect(uint32_t node, const uint8_t *states, uint32_t n)
{
    const struct dt_msg_reach *m = &now->agents[node].reach.reach;
    const struct dt_msg_reached *v = m->results.v;

    until_answered(node);
    assert_int_equal(m->generation, 3);
    assert_int_equal(m->results.n, n);
    v = m->results.v;
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(v[i].addr, i);
        assert_int_equal(v[i].state, states[i]);
        assert_true((v[i].error == 0) == (v[i].state == DT_REACH_OK));
    }
    dt_msg_free(DT_MSG_REACH, &now->agents[node].reach);
}

#define EXPECT(node, ...)                                                                          \
    expect(node, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static int open_agents(void **state)
{
    (void)state;
    alarm(WATCHDOG_S);
    now++;
    uv_loop_init(&now->loop);
    for (int i = 0; i < AGENTS; i++)
        now->agents[i].probe = dt_probe_create(&now->loop, &now->agents[i].port);
    return now->agents[0].port && now->agents[1].port ? 0 : -1;
}

static void two_agents_reach_each_other(void **state)
{
    (void)state;
    begin(0, &(struct wish){ .node = 1, .addrs = { "127.0.0.1" } });
    begin(1, &(struct wish){ .node = 0, .addrs = { "127.0.0.1" } });
    EXPECT(0, DT_REACH_OK);
    EXPECT(1, DT_REACH_OK);
}

static void the_caller_says_how_long_the_bytes_took(void **state)
{
    const struct dt_msg_reached *r;
    uint64_t began_ns = dt_now_ns();

    (void)state;
    begin(1, &(struct wish){ .node = 0, .addrs = { "127.0.0.1" } });
    begin(0, &(struct wish){ .node = 1, .addrs = { "127.0.0.1" } });
    until_answered(0);
    r = now->agents[0].reach.reach.results.v;
    assert_true(r->bulk_ns > 0);
    assert_true(r->both_ns > r->bulk_ns);
    assert_true(r->both_ns < dt_now_ns() - began_ns);
    EXPECT(0, DT_REACH_OK);
}

static void an_early_hello_waits(void **state)
{
    (void)state;
    begin(0, &(struct wish){ .node = 1, .addrs = { "127.0.0.1" } });
    for (int i = 0; i < 20; i++)
        uv_run(&now->loop, UV_RUN_NOWAIT);
    assert_false(now->agents[0].answered);
    begin(1, &(struct wish){ .node = 0, .addrs = { "127.0.0.1" } });
    EXPECT(0, DT_REACH_OK);
    EXPECT(1, DT_REACH_OK);
}

static void the_first_address_that_works_is_enough(void **state)
{
    (void)state;
    begin(1, &(struct wish){ .node = 0, .addrs = { "127.0.0.1" } });
    begin(0, &(struct wish){ .node = 1, .addrs = { "nowhere", "127.0.0.1", "127.0.0.2" } });
    EXPECT(0, DT_REACH_CONNECT, DT_REACH_OK);
}

static void all_addresses_are_tried_on_request(void **state)
{
    (void)state;
    begin(1, &(struct wish){ .node = 0, .addrs = { "127.0.0.1" } });
    begin(0,
          &(struct wish){ .node = 1, .addrs = { "127.0.0.2", "nowhere", "127.0.0.1" }, .all = 1 });
    EXPECT(0, DT_REACH_OK, DT_REACH_CONNECT, DT_REACH_OK);
}

static void a_port_without_listener_refuses_the_connection(void **state)
{
    uint16_t port;
    int fd = dt_inet_listen(&port);

    (void)state;
    close(fd);
    begin(0, &(struct wish){ .node = 1, .port = port, .addrs = { "127.0.0.1" } });
    until_answered(0);
    assert_int_equal(((struct dt_msg_reached *)now->agents[0].reach.reach.results.v)->error,
                     ECONNREFUSED);
    EXPECT(0, DT_REACH_CONNECT);
}

static void a_peer_with_another_secret_is_a_stranger(void **state)
{
    (void)state;
    begin(1, &(struct wish){ .node = 0, .addrs = { "127.0.0.1" }, .secret = 1 });
    begin(0, &(struct wish){ .node = 1, .addrs = { "127.0.0.1" }, .secret = 2 });
    EXPECT(0, DT_REACH_STRANGER);
    EXPECT(1, DT_REACH_STRANGER);
}

static time_t later_s; /* added to the clock */

/* Replaces clock_gettime for everything in this process. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *t)
{
    int r = (int)syscall(SYS_clock_gettime, clock, t);

    t->tv_sec += later_s;
    return r;
}

/* An agent that had no processor for a while still sees what arrived in time. */
static void an_agent_that_stood_still_reads_before_it_gives_up(void **state)
{
    (void)state;
    begin(0, &(struct wish){ .node = 1, .addrs = { "127.0.0.1" } });
    begin(1, &(struct wish){ .node = 0, .addrs = { "127.0.0.1" } });
    later_s += 60;
    EXPECT(0, DT_REACH_OK);
    EXPECT(1, DT_REACH_OK);
}

static void strangers_change_nothing(void **state)
{
    static const char noise[1000] = "GET / HTTP/1.0\r\n\r\n";
    int strangers[8];

    (void)state;
    for (int i = 0; i < 8; i++) {
        strangers[i] = dt_inet_connect("127.0.0.1", now->agents[1].port);
        for (int k = 0; k < 10; k++)
            uv_run(&now->loop, UV_RUN_NOWAIT);
        if (i % 2)
            assert_int_equal(send(strangers[i], noise, sizeof noise, MSG_NOSIGNAL), sizeof noise);
    }
    begin(1, &(struct wish){ .node = 0, .addrs = { "127.0.0.1" } });
    begin(0, &(struct wish){ .node = 1, .addrs = { "127.0.0.1" } });
    EXPECT(0, DT_REACH_OK);
    EXPECT(1, DT_REACH_OK);
    for (int i = 0; i < 8; i++)
        close(strangers[i]);
}

static int open_agents_of_few_files(void **state)
{
    struct rlimit limit, low;
    int r;

    getrlimit(RLIMIT_NOFILE, &limit);
    low = (struct rlimit){ FEW_FILES, limit.rlim_max };
    setrlimit(RLIMIT_NOFILE, &low);
    r = open_agents(state);
    setrlimit(RLIMIT_NOFILE, &limit);
    return r;
}

static bool is_connected(int fd)
{
    struct tcp_info info = { 0 };
    socklen_t len = sizeof info;

    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
           info.tcpi_state == TCP_ESTABLISHED;
}

/* Connects more callers than an agent with few descriptors lets wait. The first ones go first. */
static void crowd_in(int strangers[CROWD])
{
    char c;

    for (int i = 0; i < CROWD; i++) {
        strangers[i] = dt_inet_connect("127.0.0.1", now->agents[1].port);
        while (!is_connected(strangers[i]))
            uv_run(&now->loop, UV_RUN_NOWAIT);
    }
    for (int i = 0; i < 2 * CROWD; i++)
        uv_run(&now->loop, UV_RUN_NOWAIT);
    assert_int_equal(recv(strangers[0], &c, 1, MSG_DONTWAIT), 0);
}

static void many_callers_leave_descriptors_to_the_agent(void **state)
{
    int strangers[CROWD];
    char c;

    (void)state;
    crowd_in(strangers);
    assert_int_equal(recv(strangers[CROWD - 1], &c, 1, MSG_DONTWAIT), -1);
    begin(1, &(struct wish){ .node = 0, .addrs = { "127.0.0.1" } });
    begin(0, &(struct wish){ .node = 1, .addrs = { "127.0.0.1" } });
    EXPECT(0, DT_REACH_OK);
    EXPECT(1, DT_REACH_OK);
    for (int i = 0; i < CROWD; i++)
        close(strangers[i]);
}

static void many_strangers_make_room_for_a_proven_peer(void **state)
{
    static const char rest[DT_REACH_BYTES];
    struct dt_auth auth = { .generation = 3, .me = 0, .peer = 1, .purpose = DT_AUTH_AGENTS };
    struct dt_probepath path = { 0 };
    int strangers[CROWD];
    char c;

    (void)state;
    begin(1, &(struct wish){ .node = 0, .addrs = { "127.0.0.1" } });
    dt_probepath_call(&path, dt_inet_connect("127.0.0.1", now->agents[1].port), &auth);
    while (path.phase < DT_PATH_RECEIPT) { /* sends many bytes one by one */
        assert_int_equal(dt_probepath_step(&path, &auth, 1), DT_SHAKE_PENDING);
        uv_run(&now->loop, UV_RUN_NOWAIT);
    }
    crowd_in(strangers);
    assert_int_equal(recv(path.shake.fd, &c, 1, MSG_DONTWAIT), -1);
    assert_int_equal(send(path.shake.fd, rest, sizeof rest - 1, MSG_NOSIGNAL), sizeof rest - 1);
    while (dt_probepath_step(&path, &auth, 1) == DT_SHAKE_PENDING)
        uv_run(&now->loop, UV_RUN_NOWAIT);
    assert_int_equal(path.phase, DT_PATH_LEAVING);
    close(path.shake.fd);
    for (int i = 0; i < CROWD; i++)
        close(strangers[i]);
}

/* A host that stays silent at 127.0.0.1 and hangs up at 127.0.0.2. */
struct rude {
    int fd;
    unsigned hangups;
};

static void on_rude_caller(uv_poll_t *poll, int status, int events)
{
    struct rude *r = poll->data;
    struct sockaddr_in6 at;
    socklen_t len = sizeof at;
    int fd = accept(r->fd, NULL, NULL);

    (void)status;
    (void)events;
    assert_true(fd >= 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    if (at.sin6_addr.s6_addr[15] != 2)
        return;
    close(fd);
    r->hangups++;
}

static void a_peer_that_hangs_up_is_not_called_again_at_once(void **state)
{
    enum { HANGUPS = 4, AT_LEAST_MS = 200 };
    uint16_t port;
    struct rude r = { .fd = dt_inet_listen(&port) };
    uv_poll_t poll = { .data = &r };
    uint64_t began = 0;

    (void)state;
    uv_poll_init(&now->loop, &poll, r.fd);
    uv_poll_start(&poll, UV_READABLE, on_rude_caller);
    begin(0, &(struct wish){ .node = 1, .port = port, .addrs = { "127.0.0.1", "127.0.0.2" } });
    while (r.hangups < HANGUPS) {
        uv_run(&now->loop, UV_RUN_ONCE);
        began = began ? began : r.hangups ? dt_now_ns() : 0;
    }
    assert_true(dt_now_ns() - began >= AT_LEAST_MS * 1000000ull);
    uv_poll_stop(&poll);
    close(r.fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(two_agents_reach_each_other, open_agents),
        cmocka_unit_test_setup(the_caller_says_how_long_the_bytes_took, open_agents),
        cmocka_unit_test_setup(an_early_hello_waits, open_agents),
        cmocka_unit_test_setup(the_first_address_that_works_is_enough, open_agents),
        cmocka_unit_test_setup(all_addresses_are_tried_on_request, open_agents),
        cmocka_unit_test_setup(a_port_without_listener_refuses_the_connection, open_agents),
        cmocka_unit_test_setup(a_peer_with_another_secret_is_a_stranger, open_agents),
        cmocka_unit_test_setup(an_agent_that_stood_still_reads_before_it_gives_up, open_agents),
        cmocka_unit_test_setup(strangers_change_nothing, open_agents),
        cmocka_unit_test_setup(many_callers_leave_descriptors_to_the_agent,
                               open_agents_of_few_files),
        cmocka_unit_test_setup(many_strangers_make_room_for_a_proven_peer,
                               open_agents_of_few_files),
        cmocka_unit_test_setup(a_peer_that_hangs_up_is_not_called_again_at_once, open_agents),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
