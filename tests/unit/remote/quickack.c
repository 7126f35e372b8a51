/* The TCP connections of another process, from which dtrun removes the causes of delays of small
 * messages. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/remote/quickack.h"
#include "tests/unit/unit.h"

enum { ROUNDS = 20 };

struct peer { /* a process with one end of a TCP connection; the test has the other end, fd */
    pid_t pid;
    int fd;
    int told; /* what it reports, a byte each */
};

static void tell(int fd, char byte)
{
    if (write(fd, &byte, 1) != 1)
        _exit(1);
}

/* Answers q, and reports a when it has read it, and n if Nagle's algorithm is off. */
static _Noreturn void be_peer(int fd, int told)
{
    char byte;
    int nodelay;
    socklen_t size = sizeof nodelay;

    tell(told, '.');
    while (read(fd, &byte, 1) == 1) {
        if (byte == 'q')
            tell(fd, byte);
        if (byte == 'a')
            tell(told, byte);
        if (byte == 'n' && getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &nodelay, &size) == 0)
            tell(told, (char)('0' + nodelay));
    }
    _exit(0);
}

static char heard(int fd)
{
    char byte = 0;

    assert_int_equal(read(fd, &byte, 1), 1);
    return byte;
}

static void send_byte(const struct peer *p, char byte)
{
    assert_int_equal(write(p->fd, &byte, 1), 1);
}

static struct peer start_peer(void)
{
    struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof addr;
    int listener = socket(AF_INET, SOCK_STREAM, 0), told[2];
    struct peer p = { .fd = socket(AF_INET, SOCK_STREAM, 0) };

    assert_int_equal(bind(listener, (struct sockaddr *)&addr, sizeof addr), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&addr, &size), 0);
    assert_int_equal(connect(p.fd, (struct sockaddr *)&addr, sizeof addr), 0);
    assert_int_equal(pipe(told), 0);
    p.pid = fork();
    if (p.pid == 0) {
        int fd = accept(listener, NULL, NULL);

        close(listener);
        close(p.fd);
        be_peer(fd, told[1]);
    }
    assert_true(p.pid > 0);
    close(listener);
    close(told[1]);
    p.told = told[0];
    assert_int_equal(heard(p.told), '.');
    return p;
}

static void end_peer(const struct peer *p)
{
    int status;

    close(p->fd);
    close(p->told);
    assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
    assert_int_equal(status, 0);
}

static bool is_acknowledged(const struct peer *p)
{
    struct tcp_info info;
    socklen_t size = sizeof info;

    assert_int_equal(getsockopt(p->fd, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
    return info.tcpi_unacked == 0;
}

/* The kernel may lack or forbid these system calls. */
static void need_pidfd_getfd(const struct dt_quickack *q)
{
    if (q->n == 0 && (errno == ENOSYS || errno == EPERM)) {
        print_message("SKIP: this machine does not allow pidfd_getfd\n");
        skip();
    }
}

static void nagles_algorithm_is_turned_off_in_a_child(void **state)
{
    struct peer p = start_peer();
    struct dt_quickack q;

    (void)state;
    send_byte(&p, 'n');
    assert_int_equal(heard(p.told), '0');
    dt_quickack_open(&q, p.pid);
    need_pidfd_getfd(&q);
    assert_int_equal(q.n, 1);
    send_byte(&p, 'n');
    assert_int_equal(heard(p.told), '1');
    dt_quickack_close(&q);
    end_peer(&p);
}

/* A process that answers acknowledges late, possibly only with its next answer. */
static void data_that_a_child_has_read_is_acknowledged_at_once(void **state)
{
    struct peer p = start_peer();
    struct dt_quickack q;
    int prompt = 0;

    (void)state;
    dt_quickack_open(&q, p.pid);
    need_pidfd_getfd(&q);
    for (int i = 0; i < ROUNDS; i++) {
        for (int turn = 0; turn < 4; turn++) {
            send_byte(&p, 'q');
            assert_int_equal(heard(p.fd), 'q');
        }
        send_byte(&p, 'a');
        assert_int_equal(heard(p.told), 'a');
        dt_quickack_now(&q);
        prompt += is_acknowledged(&p);
    }
    assert_true(prompt > ROUNDS / 2); /* an acknowledgement may be under way for a moment */
    dt_quickack_close(&q);
    end_peer(&p);
}

static void connections_are_not_kept_open(void **state)
{
    struct peer p = start_peer();
    struct dt_quickack q;
    char byte;

    (void)state;
    dt_quickack_open(&q, p.pid);
    need_pidfd_getfd(&q);
    assert_int_equal(q.n, 1);
    assert_int_equal(kill(p.pid, SIGKILL), 0);
    assert_int_equal(read(p.fd, &byte, 1), 0);
    dt_quickack_now(&q);
    dt_quickack_close(&q);
    dt_quickack_now(&q);
    close(p.fd);
    close(p.told);
    assert_int_equal(waitpid(p.pid, NULL, 0), p.pid);
}

static void without_a_process_there_is_nothing_to_do(void **state)
{
    struct dt_quickack q;

    (void)state;
    dt_quickack_open(&q, 0);
    assert_int_equal(q.pidfd, -1);
    dt_quickack_now(&q);
    dt_quickack_close(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nagles_algorithm_is_turned_off_in_a_child),
        cmocka_unit_test(data_that_a_child_has_read_is_acknowledged_at_once),
        cmocka_unit_test(connections_are_not_kept_open),
        cmocka_unit_test(without_a_process_there_is_nothing_to_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
