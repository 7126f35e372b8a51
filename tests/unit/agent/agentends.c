/* How ranks and dtrun-agent end: stopped, killed, or left alone. No process survives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/agent/agentproc.h"

static void stop_sends_term_and_later_kill(void **state)
{
    struct agent *a = *state;
    int ends[4] = { 0 }; /* the signal that ended the rank, or its exit code */

    /* A shell does not notice a signal that comes right before its command in the foreground. */
    agent_start(a, 4,
                "case $DTRUN_RANK in\n"
                "0) trap '' TERM; echo up; while :; do sleep 300; done;;\n"
                "1) echo up; kill -STOP $$; sleep 300;;\n"
                "2) trap 'echo term; exit 4' TERM; echo up; sleep 300 & wait;;\n"
                "3) trap 'trap - TERM; echo term' TERM; echo up; while sleep 9 & do wait; done;;\n"
                "esac",
                NULL);
    for (uint32_t r = 0; r < 4; r++)
        agent_wait_for_output(a, r, "up\n");
    agent_stop(a, 5000);
    agent_wait_for_output(a, 3, "up\nterm\n");
    agent_stop(a, 600000); /* neither repeats SIGTERM nor prolongs the grace */
    for (int i = 0; i < 4; i++) {
        agent_expect(a, DT_MSG_EXIT);
        assert_true(a->msg.exit.flags & DT_EXITED_STOPPED);
        ends[a->msg.exit.rank] = a->msg.exit.signo ? a->msg.exit.signo : a->msg.exit.code;
    }
    assert_int_equal(a->msg.exit.rank % 3, 0); /* these two end last: they survive SIGTERM */
    assert_int_equal(ends[0], SIGKILL);
    assert_int_equal(ends[3], SIGKILL);
    assert_int_equal(ends[1], SIGTERM);
    assert_int_equal(ends[2], 4);
    agent_expect(a, DT_MSG_DONE);
    assert_string_equal(agent_output(a, 2, 1), "up\nterm\n");
    assert_int_equal(agent_processes(a), 0);
}

static void stop_without_grace_kills_at_once(void **state)
{
    struct agent *a = *state;

    agent_start(a, 2, "trap '' TERM; setsid sleep 300 & echo up; kill -STOP $$", NULL);
    for (uint32_t r = 0; r < 2; r++)
        agent_wait_for_output(a, r, "up\n");
    agent_stop(a, 0);
    for (int i = 0; i < 2; i++) {
        agent_expect(a, DT_MSG_EXIT);
        assert_int_equal(a->msg.exit.signo, SIGKILL);
        assert_int_equal(a->msg.exit.code, -1);
        assert_int_equal(a->msg.exit.flags, DT_EXITED_STOPPED);
    }
    agent_expect(a, DT_MSG_DONE);
    assert_int_equal(agent_processes(a), 0);
}

static void a_rank_that_died_before_stop_was_not_stopped(void **state)
{
    struct agent *a = *state;
    struct dt_msg_query query = { 77 };

    agent_start(a, 2, "[ $DTRUN_RANK = 0 ] && exit 7; exec sleep 300", NULL);
    agent_expect(a, DT_MSG_EXIT);
    assert_int_equal(a->msg.exit.flags, 0);
    agent_send(a, DT_MSG_QUERY, &query);
    agent_expect(a, DT_MSG_ANSWER);
    assert_int_equal(a->msg.answer.id, 77);
    agent_stop(a, 5000);
    agent_expect(a, DT_MSG_EXIT);
    assert_int_equal(a->msg.exit.signo, SIGTERM);
    assert_int_equal(a->msg.exit.flags, DT_EXITED_STOPPED);
    agent_expect(a, DT_MSG_DONE);
}

/* The rank of the next test has so much memory that the kernel needs a while to free it. */
static int run_fat_rank(void)
{
    enum { BYTES = 256 << 20 };

    if (mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1,
             0) == MAP_FAILED)
        return 1;
    printf("up\n");
    fflush(stdout);
    pause();
    return 0;
}

/* Waits until the process is ending or has ended. */
static void wait_until_exiting(uint32_t pid)
{
    enum { PF_EXITING = 4 }; /* of the kernel */
    char path[64];
    char line[512];
    unsigned flags = 0;

    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    while (!(flags & PF_EXITING)) {
        FILE *f = fopen(path, "r");
        const char *after;

        if (!f)
            return;
        if (fgets(line, sizeof line, f) && (after = strrchr(line, ')')))
            sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %u", &flags);
        fclose(f);
    }
}

static void exit_comes_before_answer(struct agent *a)
{
    const struct arrived *m;

    while (!agent_has(a, DT_MSG_ANSWER) && !a->at_end)
        agent_listen(a, 1);
    for (m = a->first; m && m->type != DT_MSG_ANSWER && m->type != DT_MSG_EXIT; m = m->next)
        continue;
    assert_non_null(m);
    assert_int_equal(m->type, DT_MSG_EXIT);
}

static void the_answer_waits_for_a_rank_that_is_dying(void **state)
{
    struct agent *a = *state;
    struct dt_msg_query query = { 5 };
    char self[4096] = "";
    const char *const argv[] = { self, "as-fat-rank", NULL };
    uint32_t pid;

    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    agent_start_argv(a, 1, argv, NULL);
    agent_expect(a, DT_MSG_STARTED);
    pid = ((const struct dt_msg_started_rank *)a->msg.started.ranks.v)->pid;
    agent_wait_for_output(a, 0, "up\n");
    kill((pid_t)pid, SIGKILL);
    wait_until_exiting(pid);
    agent_send(a, DT_MSG_QUERY, &query);
    exit_comes_before_answer(a);
}

/* Finds the processes that will execute ranks 0 and 1, in this order. */
static void find_two_ranks(const struct agent *a, int pids[2])
{
    pid_t worker = agent_worker(a);
    char path[64];
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)worker, (int)worker);
    f = fopen(path, "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%d %d", &pids[0], &pids[1]), 2);
    fclose(f);
}

/* Returns when the agent has handled everything that was sent before. */
static void exchange_ping(struct agent *a)
{
    struct dt_msg_ping ping = { .time_ns = 1 };

    agent_send(a, DT_MSG_PING, &ping);
    agent_expect(a, DT_MSG_PONG);
}

static void a_death_before_the_start_is_described(void **state)
{
    struct agent *a = *state;
    int pids[2];

    a->hold = true;
    agent_start(a, 2, "exit 7", NULL);
    agent_expect(a, DT_MSG_READY);
    find_two_ranks(a, pids);
    kill(pids[1], SIGKILL);
    agent_expect(a, DT_MSG_SPAWN_FAILED);
    assert_int_equal(a->msg.spawn_failed.rank, 1);
    assert_int_equal(a->msg.spawn_failed.error, 0);
    assert_string_equal(a->msg.spawn_failed.what,
                        "a process that was to become a rank was killed by signal 9 (Killed)");
    agent_end(a);
}

static void an_exit_before_the_start_is_reported_before_the_answer(void **state)
{
    struct agent *a = *state;
    struct dt_msg_query query = { 6 };
    int pids[2];

    a->hold = true;
    agent_start(a, 2, "exit 7", NULL);
    agent_expect(a, DT_MSG_READY);
    find_two_ranks(a, pids);
    kill(pids[1], SIGSTOP); /* as if executing the program took long */
    agent_go(a, &a->msg.ready);
    while (kill(pids[0], 0) == 0)
        agent_listen(a, 1);
    agent_send(a, DT_MSG_QUERY, &query);
    exchange_ping(a);
    exchange_ping(a);
    kill(pids[1], SIGCONT);
    exit_comes_before_answer(a);
}

/* The agent of the first host looks at what its ranks have loaded, with a process of its own. */
static void as_second_host(struct dt_msg_start *start)
{
    start->nodes = 2;
    start->node_rank = 1;
}

/* Starts two ranks of six processes each. */
static void start_family(struct agent *a, void (*tweak)(struct dt_msg_start *))
{
    int n = 0;

    agent_start(a, 2, agent_family, tweak);
    agent_expect(a, DT_MSG_STARTED);
    /* A process that is executing another program has no environment for a moment, so the test
     * counts until all have been seen. */
    for (int ms = 0; ms < AGENT_PATIENCE_MS && (n = agent_processes(a)) < 14; ms += 5) {
        agent_listen(a, 5);
        agent_ping(a, 1); /* the lease may be short */
    }
    assert_int_equal(n, 14);
}

/* The agent reports a signal whichever of its two processes gets it. Nothing survives the keeper.
 */
static void the_agent_reports_and_survives_signals(void **state)
{
    static const int signos[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2 };
    struct agent *a = *state;

    start_family(a, as_second_host);
    for (size_t i = 0; i < sizeof signos / sizeof *signos; i++) {
        kill(i % 2 ? agent_worker(a) : a->keeper, signos[i]);
        agent_expect(a, DT_MSG_SIGNALLED);
        assert_int_equal(a->msg.signalled.signo, signos[i]);
    }
    kill(a->keeper, SIGKILL);
    assert_true(agent_all_gone(a));
    assert_int_equal(agent_await(a), 128 + SIGKILL);
}

enum { SHORT_MS = 3000 }; /* a crowded machine may stop this process for a second */

static void short_lease(struct dt_msg_start *start)
{
    as_second_host(start);
    start->heartbeat_ms = SHORT_MS;
}

static void the_agent_of_a_silent_launcher_ends_with_its_lease(void **state)
{
    struct agent *a = *state;

    start_family(a, short_lease);
    for (int i = 0; i < 20; i++) { /* two leases */
        agent_listen(a, SHORT_MS / 10);
        agent_ping(a, (uint64_t)i);
    }
    assert_int_equal(agent_processes(a), 14);
    assert_true(agent_all_gone(a));
    assert_int_equal(agent_await(a), 125);
}

static void a_launcher_that_announced_its_stop_may_be_silent(void **state)
{
    struct agent *a = *state;
    struct dt_msg_signal m = { SIGSTOP };

    start_family(a, short_lease);
    agent_send(a, DT_MSG_SIGNAL, &m);
    agent_listen(a, 2 * SHORT_MS);
    assert_false(a->at_end);
    assert_int_equal(agent_processes(a), 14);
    m.signo = SIGCONT;
    agent_send(a, DT_MSG_SIGNAL, &m);
    assert_true(agent_all_gone(a)); /* the launcher is silent again */
}

static void ranks_stay_stopped_after_a_standstill_until_a_ping(void **state)
{
    struct agent *a = *state;
    uint32_t rank;
    pid_t worker;

    agent_start(a, 1, "exec sleep 600", short_lease);
    agent_expect(a, DT_MSG_STARTED);
    rank = ((const struct dt_msg_started_rank *)a->msg.started.ranks.v)->pid;
    worker = agent_worker(a);
    kill(a->keeper, SIGSTOP);
    kill(worker, SIGSTOP);
    agent_listen(a, 5000); /* longer than the lease */
    kill(a->keeper, SIGCONT);
    kill(worker, SIGCONT);
    agent_wait_for_state(rank, 'T');
    agent_ping(a, 1);
    agent_wait_for_state(rank, 'S');
    assert_true(agent_all_gone(a)); /* the launcher is silent again */
    assert_int_equal(agent_await(a), 125);
}

/* Makes standard error a file. Returns the old one. */
static int redirect_errors(const char *path)
{
    int saved = dup(STDERR_FILENO), file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(saved >= 0 && file >= 0);
    assert_int_equal(dup2(file, STDERR_FILENO), STDERR_FILENO);
    close(file);
    return saved;
}

static void a_stuck_worker_is_killed_and_the_keeper_says_why(void **state)
{
    struct agent *a;
    char path[128], text[200] = "";
    float seconds;
    FILE *errors;
    int saved;

    snprintf(path, sizeof path, "%s/errors", agent_scratch);
    saved = redirect_errors(path);
    agent_setup(state);
    dup2(saved, STDERR_FILENO);
    close(saved);
    a = *state;
    start_family(a, short_lease);
    kill(agent_worker(a), SIGSTOP);
    assert_true(agent_all_gone(a));
    assert_int_equal(agent_await(a), 128 + SIGKILL);
    errors = fopen(path, "r");
    assert_non_null(errors);
    assert_int_equal(
        fscanf(errors, "dtrun-agent: its worker was stuck for %f s %199[^\n]", &seconds, text), 2);
    assert_string_equal(text, "(it was stopped); it was killed");
    fclose(errors);
    unlink(path);
    agent_teardown(state);
}

static void an_invalid_message_ends_the_agent(void **state)
{
    struct agent *a = *state;
    static const uint8_t frame[] = { 3, 0, 0, 0, DT_MSG_PING, 0, 0, 0, 'x', 'y', 'z' };

    start_family(a, as_second_host);
    assert_int_equal(send(a->fd, frame, sizeof frame, MSG_NOSIGNAL), sizeof frame);
    assert_int_equal(agent_await(a), 125);
    assert_true(agent_all_gone(a));
}

static void a_foreign_process_with_the_pipe_does_not_delay_the_end(void **state)
{
    struct agent *a = *state;
    char path[64];
    int fd;

    agent_start(a, 1, "echo hi; exec sleep 300", NULL);
    agent_expect(a, DT_MSG_STARTED);
    snprintf(path, sizeof path, "/proc/%u/fd/1",
             ((const struct dt_msg_started_rank *)a->msg.started.ranks.v)->pid);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    agent_wait_for_output(a, 0, "hi\n");
    assert_int_equal(write(fd, "more\n", 5), 5);
    agent_stop(a, 0);
    agent_expect(a, DT_MSG_DONE);
    assert_string_equal(agent_output(a, 0, 1), "hi\nmore\n");
    close(fd);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        AGENT_TEST(stop_sends_term_and_later_kill),
        AGENT_TEST(stop_without_grace_kills_at_once),
        AGENT_TEST(a_rank_that_died_before_stop_was_not_stopped),
        AGENT_TEST(the_answer_waits_for_a_rank_that_is_dying),
        AGENT_TEST(a_death_before_the_start_is_described),
        AGENT_TEST(an_exit_before_the_start_is_reported_before_the_answer),
        AGENT_TEST(the_agent_reports_and_survives_signals),
        AGENT_TEST(the_agent_of_a_silent_launcher_ends_with_its_lease),
        AGENT_TEST(a_launcher_that_announced_its_stop_may_be_silent),
        AGENT_TEST(ranks_stay_stopped_after_a_standstill_until_a_ping),
        cmocka_unit_test(a_stuck_worker_is_killed_and_the_keeper_says_why),
        AGENT_TEST(an_invalid_message_ends_the_agent),
        AGENT_TEST(a_foreign_process_with_the_pipe_does_not_delay_the_end),
    };

    if (argc == 2 && strcmp(argv[1], "as-fat-rank") == 0)
        return run_fat_rank();
    alarm(AGENT_TEST_SECONDS);
    return cmocka_run_group_tests(tests, agent_make_scratch, agent_remove_scratch);
}
