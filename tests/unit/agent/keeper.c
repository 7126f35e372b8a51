/* The outer process of the agent watches the inner one. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/agent/keeper.h"
#include "launcher/base/clock.h"
#include "launcher/base/error.h"
#include "tests/unit/sanitized.h"
#include "tests/unit/unit.h"

enum { LEASE_MS = 600 * 1000, TO_ITS_END_MS = 2000 };

/* The clock counts from the machine's start, which may be less than LEASE_MS ago. */
static uint32_t lease_ms(void)
{
    uint64_t half_ms = dt_now_ns() / 1000000 / 2;

    return half_ms < LEASE_MS ? (uint32_t)half_ms : LEASE_MS;
}

/* The launcher has been silent for nearly a lease when this worker shows that it is alive, and then
 * gets stuck. */
static int get_stuck(struct dt_keeper *keeper, int fd)
{
    keeper->launcher_heard_ns =
        dt_now_ns() - UINT64_C(1000000) * (keeper->lease_ms - TO_ITS_END_MS);
    send(fd, "", 1, 0);
    pause();
    return 0;
}

static int do_work(struct dt_keeper *keeper, int fd)
{
    (void)keeper;
    send(fd, "", 1, 0);
    return 7;
}

static int run(int (*work)(struct dt_keeper *keeper, int fd))
{
    int silence[2], status;
    pid_t pid;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, silence), 0);
    pid = fork();
    if (pid == 0) {
        dup2(silence[1], STDIN_FILENO);
        _exit(dt_keeper_run(lease_ms(), work));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    close(silence[0]);
    close(silence[1]);
    return WEXITSTATUS(status);
}

static void a_worker_that_is_stuck_when_the_lease_ends_is_killed(void **state)
{
    uint64_t began_ns = dt_now_ns(), lease_ns = UINT64_C(1000000) * lease_ms();

    (void)state;
    assert_int_equal(run(get_stuck), DT_EXIT_SIGNAL + SIGKILL);
    assert_true(dt_now_ns() - began_ns < lease_ns); /* it was silent for less than a lease */
}

static void a_worker_ends_with_its_own_exit_code(void **state)
{
    (void)state;
    assert_int_equal(run(do_work), 7);
}

/* setsid also fails here, as it does for an agent that sshd has started. */
static void fail_for_lack_of_memory(int err)
{
    const struct rlimit none = { 0, 0 };

    dup2(err, STDERR_FILENO);
    setpgid(0, 0);
    setrlimit(RLIMIT_AS, &none);
    _exit(dt_keeper_run(lease_ms(), do_work));
}

static void a_keeper_says_why_it_cannot_start(void **state)
{
    char text[200];
    int err[2], status;
    ssize_t n;
    pid_t pid;

    (void)state;
    if (SANITIZED)
        skip();
    assert_int_equal(pipe(err), 0);
    pid = fork();
    if (pid == 0)
        fail_for_lack_of_memory(err[1]);
    close(err[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == DT_EXIT_LAUNCH);
    n = read(err[0], text, sizeof text - 1);
    close(err[0]);
    text[n > 0 ? n : 0] = '\0';
    assert_string_equal(text, "dtrun-agent: mmap: Cannot allocate memory\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_that_is_stuck_when_the_lease_ends_is_killed),
        cmocka_unit_test(a_worker_ends_with_its_own_exit_code),
        cmocka_unit_test(a_keeper_says_why_it_cannot_start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
