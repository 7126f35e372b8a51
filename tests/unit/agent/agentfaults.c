/* --inject in dtrun-agent, and the steps that linked ranks report. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <signal.h>
#include <unistd.h>

#include "tests/unit/agent/agentproc.h"

/* Only the first of these is due: the others are of the next generation and of another host. */
static void kill_three_ranks(struct dt_msg_start *start)
{
    dt_strs_add(&start->inject, "kill:rank=0,after=0.05");
    dt_strs_add(&start->inject, "kill:rank=1,after=0,restart=1");
    dt_strs_add(&start->inject, "kill:rank=9,after=0");
}

static void only_faults_of_this_host_and_generation_are_injected(void **state)
{
    struct agent *a = *state;

    agent_start(a, 2, "exec sleep 300", kill_three_ranks);
    agent_expect(a, DT_MSG_STARTED);
    agent_expect(a, DT_MSG_EXIT);
    assert_int_equal(a->msg.exit.rank, 0);
    assert_int_equal(a->msg.exit.signo, SIGKILL);
    assert_int_equal(a->msg.exit.flags, DT_EXITED_INJECTED);
    agent_listen(a, 100);
    assert_false(agent_has(a, DT_MSG_EXIT));
}

static void lose_the_host(struct dt_msg_start *start)
{
    dt_strs_add(&start->inject, "host:node=0,after=0.2");
}

static void an_injected_host_loss_leaves_nothing(void **state)
{
    struct agent *a = *state;

    agent_start(a, 2, agent_family, lose_the_host);
    assert_int_equal(agent_await(a), 128 + SIGKILL);
    assert_true(agent_all_gone(a));
    assert_false(agent_has(a, DT_MSG_EXIT));
}

/* Starts ranks that link libdtrun, and sends them their addresses. */
static void start_steps(struct agent *a, uint32_t n, const char *mode,
                        void (*tweak)(struct dt_msg_start *))
{
    struct dt_msg_addr addrs[] = { { (char *)"127.0.0.1", 0, 0 }, { (char *)"127.0.0.1", 0, 0 } };
    struct dt_msg_table table = { a->generation + 1, { addrs, n }, { 0 } };
    const char *const argv[] = { agent_program("tests/rank/steps"), mode, NULL };
    uint32_t seen = 0;

    agent_start_argv(a, n, argv, tweak);
    for (uint32_t i = 0; i < n; i++) {
        agent_expect(a, DT_MSG_RANK_HELLO);
        assert_int_equal(a->msg.rank_hello.generation, a->generation);
        seen |= 1u << a->msg.rank_hello.rank;
    }
    assert_int_equal(seen, (1u << n) - 1);
    agent_send(a, DT_MSG_TABLE, &table);
}

static void linked_ranks_report_their_step_and_dt_finalize(void **state)
{
    struct agent *a = *state;

    start_steps(a, 2, "meet", NULL);
    for (int i = 0; i < 2; i++) {
        agent_expect(a, DT_MSG_EXIT);
        assert_int_equal(a->msg.exit.code, 0);
        assert_int_equal(a->msg.exit.flags, DT_EXITED_LINKED | DT_EXITED_FINALIZED);
        assert_int_equal(a->msg.exit.step, 9);
    }
    agent_expect(a, DT_MSG_DONE);
    assert_string_equal(agent_output(a, 1, 1), "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n");
}

static void kill_in_step_5(struct dt_msg_start *start)
{
    dt_strs_add(&start->inject, "kill:rank=1,step=5");
}

static void a_rank_is_killed_in_the_given_step_and_peers_learn_of_it(void **state)
{
    struct agent *a = *state;

    start_steps(a, 2, "meet", kill_in_step_5);
    agent_expect(a, DT_MSG_EXIT);
    assert_int_equal(a->msg.exit.rank, 1);
    assert_int_equal(a->msg.exit.signo, SIGKILL);
    assert_int_equal(a->msg.exit.flags, DT_EXITED_LINKED | DT_EXITED_INJECTED);
    agent_expect(a, DT_MSG_EXIT); /* without an ABORT from the launcher */
    assert_int_equal(a->msg.exit.rank, 0);
    assert_int_equal(a->msg.exit.code, 3);
    assert_int_equal(a->msg.exit.flags, DT_EXITED_LINKED | DT_EXITED_PEER_LOST);
    agent_expect(a, DT_MSG_DONE);
    assert_string_equal(agent_output(a, 1, 1), "0\n1\n2\n3\n4\n");
}

static void stop_in_step_5(struct dt_msg_start *start)
{
    dt_strs_add(&start->inject, "stop:rank=0,step=5");
    dt_strs_add(&start->inject, "stop:rank=0,step=7");
}

static void a_rank_is_stopped_in_each_given_step(void **state)
{
    struct agent *a = *state;
    struct dt_msg_signal go_on = { SIGCONT };
    uint32_t rank;

    start_steps(a, 1, "alone", stop_in_step_5);
    agent_expect(a, DT_MSG_STARTED);
    rank = ((const struct dt_msg_started_rank *)a->msg.started.ranks.v)->pid;
    agent_wait_for_state(rank, 'T');
    agent_wait_for_output(a, 0, "0\n1\n2\n3\n4\n");
    agent_send(a, DT_MSG_SIGNAL, &go_on);
    agent_wait_for_output(a, 0, "0\n1\n2\n3\n4\n5\n6\n");
    agent_wait_for_state(rank, 'T'); /* otherwise SIGCONT could come before SIGSTOP */
    agent_send(a, DT_MSG_SIGNAL, &go_on);
    agent_expect(a, DT_MSG_EXIT);
    assert_int_equal(a->msg.exit.code, 0);
    assert_int_equal(a->msg.exit.flags, DT_EXITED_LINKED | DT_EXITED_FINALIZED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        AGENT_TEST(only_faults_of_this_host_and_generation_are_injected),
        AGENT_TEST(an_injected_host_loss_leaves_nothing),
        AGENT_TEST(linked_ranks_report_their_step_and_dt_finalize),
        AGENT_TEST(a_rank_is_killed_in_the_given_step_and_peers_learn_of_it),
        AGENT_TEST(a_rank_is_stopped_in_each_given_step),
    };

    alarm(AGENT_TEST_SECONDS);
    return cmocka_run_group_tests(tests, agent_make_scratch, agent_remove_scratch);
}
