/* The outer process of the agent watches the inner one. */
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/agent/keeper.h"
#include "launcher/base/clock.h"
#include "launcher/base/error.h"
#include "tests/unit/unit.h"

enum { LEASE_MS = 600 * 1000, TO_ITS_END_MS = 2000 };

/* The launcher has been silent for nearly a lease when this worker shows that it is alive, and then
 * gets stuck. */
static int get_stuck(struct dt_keeper *keeper, int fd)
{
    keeper->launcher_heard_ns = dt_now_ns() - UINT64_C(1000000) * (LEASE_MS - TO_ITS_END_MS);
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
        _exit(dt_keeper_run(LEASE_MS, work));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    close(silence[0]);
    close(silence[1]);
    return WEXITSTATUS(status);
}

static void a_worker_that_is_stuck_when_the_lease_ends_is_killed(void **state)
{
    (void)state;
    assert_int_equal(run(get_stuck), DT_EXIT_SIGNAL + SIGKILL);
}

static void a_worker_ends_with_its_own_exit_code(void **state)
{
    (void)state;
    assert_int_equal(run(do_work), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_that_is_stuck_when_the_lease_ends_is_killed),
        cmocka_unit_test(a_worker_ends_with_its_own_exit_code),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
