/* dtrun-agent as the launcher sees it. The test is the launcher; see agentproc.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/agentproc.h"

static int setup(void **state)
{
    static struct agent a;

    agent_open(&a);
    *state = &a;
    return 0;
}

static int teardown(void **state)
{
    struct agent *a = *state;
    bool gone;

    agent_free(a);
    gone = agent_all_gone(a, 2000);
    if (!gone)
        print_error("%d processes of the test are left\n", agent_processes(a));
    return gone ? 0 : -1;
}

static void hello_describes_the_host(void **state)
{
    struct agent *a = *state;
    const struct dt_msg_hello *hello = &a->msg.hello;

    assert_int_equal(hello->protocol, DT_PROTOCOL);
    assert_string_equal(hello->version, PACKAGE_VERSION);
    assert_int_equal(hello->pid, a->keeper);
    assert_int_equal(hello->cores, sysconf(_SC_NPROCESSORS_ONLN));
    assert_true(hello->memory > 1 << 20);
    assert_true(hello->free_port > 1023);
    assert_true(strlen(hello->identity) > 36);
    assert_int_equal(agent_end(a), 0);
}

static void exit_codes_and_output_arrive_before_done(void **state)
{
    struct agent *a = *state;
    uint32_t seen = 0;

    agent_start(a, 3, "echo rank $DTRUN_RANK of $DTRUN_SIZE; echo oops >&2; exit $DTRUN_RANK",
                NULL);
    agent_expect(a, DT_MSG_STARTED);
    assert_int_equal(a->msg.started.ranks.n, 3);
    for (int i = 0; i < 3; i++) {
        agent_expect(a, DT_MSG_EXIT);
        assert_int_equal(a->msg.exit.code, a->msg.exit.rank);
        assert_int_equal(a->msg.exit.signo, 0);
        assert_int_equal(a->msg.exit.flags, 0);
        assert_int_equal(a->msg.exit.step, -1);
        seen |= 1u << a->msg.exit.rank;
    }
    assert_int_equal(seen, 7);
    agent_expect(a, DT_MSG_DONE);
    for (int i = 0; i < 6; i++)
        assert_true(a->eof[i]);
    assert_string_equal(agent_output(a, 2, 1), "rank 2 of 3\n");
    assert_string_equal(agent_output(a, 1, 2), "oops\n");
    assert_int_equal(agent_end(a), 0);
}

static void a_death_by_signal_is_told_as_such(void **state)
{
    struct agent *a = *state;

    agent_start(a, 1, "kill -SEGV $$", NULL);
    agent_expect(a, DT_MSG_EXIT);
    assert_int_equal(a->msg.exit.code, -1);
    assert_int_equal(a->msg.exit.signo, SIGSEGV);
    agent_expect(a, DT_MSG_DONE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(hello_describes_the_host),
        TEST(exit_codes_and_output_arrive_before_done),
        TEST(a_death_by_signal_is_told_as_such),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
