/* The agent's rendezvous for Horovod from START to END. The test plays the launcher and the
 * clients. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launcher/place/frameworks.h"
#include "tests/unit/agent/agentproc.h"

static void with_horovod(struct dt_msg_start *start)
{
    start->frameworks = DT_FRAMEWORK_HOROVOD;
}

static void with_horovod_elsewhere(struct dt_msg_start *start)
{
    start->frameworks = DT_FRAMEWORK_HOROVOD;
    start->nodes = 2;
    start->node_rank = 1;
}

/* Connects and sends the request. -1: no process listens there. */
static int begin_request(uint16_t port, const char *request)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons(port),
                              .sin_addr = { htonl(INADDR_LOOPBACK) } };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (connect(fd, (const struct sockaddr *)&to, sizeof to) < 0) {
        close(fd);
        return -1;
    }
    assert_int_equal(send(fd, request, strlen(request), 0), strlen(request));
    return fd;
}

static int status_of(int fd)
{
    char answer[256] = "";
    size_t have = 0;
    ssize_t n;

    while ((n = recv(fd, answer + have, sizeof answer - 1 - have, 0)) > 0)
        have += (size_t)n;
    close(fd);
    assert_int_equal(strncmp(answer, "HTTP/1.1 ", 9), 0);
    return (int)strtol(answer + 9, NULL, 10);
}

static int ask(uint16_t port, const char *request)
{
    int fd = begin_request(port, request);

    return fd < 0 ? -1 : status_of(fd);
}

static const char put[] = "PUT /s/k HTTP/1.1\r\nContent-Length: 1\r\n\r\nv";
static const char get[] = "GET /s/k HTTP/1.1\r\n\r\n";

static void early_clients_are_answered_after_go(void **state)
{
    struct agent *a = *state;
    uint16_t port;
    int fd;

    a->hold = true;
    agent_start(a, 2, "exit 0", with_horovod);
    agent_expect(a, DT_MSG_READY);
    port = a->msg.ready.rendezvous_port;
    fd = begin_request(port, put);
    assert_int_not_equal(fd, -1);
    agent_go(a, &a->msg.ready);
    assert_int_equal(status_of(fd), 200);
    assert_int_equal(ask(port, get), 200);
    agent_expect(a, DT_MSG_DONE);
    assert_int_equal(agent_end(a), 0);
    assert_int_equal(ask(port, get), -1);
}

/* Ranks of other hosts may still send requests when those on this host have ended. */
static void a_rendezvous_lives_until_the_next_generation(void **state)
{
    struct agent *a = *state;
    uint16_t port;

    a->hold = true;
    agent_start(a, 1, "exit 0", with_horovod);
    agent_expect(a, DT_MSG_READY);
    port = a->msg.ready.rendezvous_port;
    agent_go(a, &a->msg.ready);
    agent_expect(a, DT_MSG_DONE);
    assert_int_equal(ask(port, put), 200);
    assert_int_equal(ask(port, get), 200);
    agent_start(a, 1, "exit 0", with_horovod);
    agent_expect(a, DT_MSG_READY);
    assert_int_not_equal(a->msg.ready.rendezvous_port, port);
    assert_int_equal(ask(port, get), -1);
    port = a->msg.ready.rendezvous_port;
    agent_go(a, &a->msg.ready);
    assert_int_equal(ask(port, get), 404);
    agent_expect(a, DT_MSG_DONE);
    assert_int_equal(agent_end(a), 0);
}

static void only_the_first_host_has_a_rendezvous_and_only_if_needed(void **state)
{
    struct agent *a = *state;

    a->hold = true;
    agent_start(a, 1, "exit 0", with_horovod_elsewhere);
    agent_expect(a, DT_MSG_READY);
    assert_int_equal(a->msg.ready.rendezvous_port, 0);
    agent_go(a, &a->msg.ready);
    agent_expect(a, DT_MSG_DONE);
    agent_start(a, 1, "exit 0", NULL);
    agent_expect(a, DT_MSG_READY);
    assert_int_equal(a->msg.ready.rendezvous_port, 0);
    agent_go(a, &a->msg.ready);
    agent_expect(a, DT_MSG_DONE);
    assert_int_equal(agent_end(a), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        AGENT_TEST(early_clients_are_answered_after_go),
        AGENT_TEST(a_rendezvous_lives_until_the_next_generation),
        AGENT_TEST(only_the_first_host_has_a_rendezvous_and_only_if_needed),
    };

    alarm(AGENT_TEST_SECONDS);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
