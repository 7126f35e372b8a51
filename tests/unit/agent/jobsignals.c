#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "launcher/agent/jobsignals.h"
#include "tests/unit/unit.h"

/* This process is the worker of an agent, and its child the keeper. */
struct fixture {
    uv_loop_t loop;
    struct dt_jobsignals *signals;
    pid_t keeper;
    int reports; /* of SIGUSR1 */
};

static void note(void *arg, int signo)
{
    struct fixture *f = arg;

    f->reports += signo == SIGUSR1;
}

static void keep(void)
{
    sigset_t none;

    sigemptyset(&none);
    dt_jobsignals_pass_on(getppid());
    kill(getpid(), SIGSTOP); /* the parent sees that signals are passed on from now */
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (;;)
        pause();
}

static struct fixture fixture;

/* Runs once: nothing closes the signals of a process. */
static int open_signals(void **state)
{
    struct fixture *f = &fixture;
    struct dt_error err;

    (void)state;
    uv_loop_init(&f->loop);
    f->signals = dt_jobsignals_open(&f->loop, note, f, &err);
    return f->signals ? 0 : -1;
}

static int set_up(void **state)
{
    struct fixture *f = &fixture;

    f->reports = 0;
    f->keeper = fork();
    if (f->keeper == 0)
        keep();
    assert_int_equal(waitpid(f->keeper, NULL, WUNTRACED), f->keeper);
    alarm(300); /* a watchdog */
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    kill(f->keeper, SIGKILL);
    waitpid(f->keeper, NULL, 0);
    return 0;
}

/* The worker gets the signal itself. */
static void signal_worker(struct fixture *f)
{
    kill(getpid(), SIGUSR1);
    uv_run(&f->loop, UV_RUN_ONCE);
}

/* The keeper, which has stood still, passes on the signal. */
static void signal_keeper(struct fixture *f)
{
    kill(f->keeper, SIGUSR1);
    kill(f->keeper, SIGCONT);
    uv_run(&f->loop, UV_RUN_ONCE);
}

static void a_signal_that_both_processes_get_is_reported_once(void **state)
{
    struct fixture *f = *state;

    signal_worker(f);
    assert_int_equal(f->reports, 1);
    signal_keeper(f);
    assert_int_equal(f->reports, 1);
    signal_keeper(f);
    assert_int_equal(f->reports, 2);
    signal_worker(f);
    assert_int_equal(f->reports, 2);
}

static void each_signal_that_one_process_gets_is_reported(void **state)
{
    struct fixture *f = *state;

    for (int i = 1; i <= 3; i++) {
        signal_keeper(f);
        assert_int_equal(f->reports, i);
    }
}

/* An agent below this process. Its exit code is 0 if it finds that its ranks had the signal that
 * came while it stood still. */
static void ask_once(void)
{
    struct fixture f = { 0 };
    struct dt_error err;

    uv_loop_init(&f.loop);
    f.signals = dt_jobsignals_open(&f.loop, note, &f, &err);
    raise(SIGSTOP);
    _exit(f.signals && dt_jobsignals_ranks_had(f.signals, SIGUSR1) && f.reports == 1 ? 0 : 1);
}

static int signal_agent_as(const char *name, const char *later)
{
    pid_t agent;
    int status;

    prctl(PR_SET_NAME, name);
    agent = fork();
    if (agent == 0)
        ask_once();
    assert_int_equal(waitpid(agent, NULL, WUNTRACED), agent);
    kill(agent, SIGUSR1);
    prctl(PR_SET_NAME, later);
    kill(agent, SIGCONT);
    assert_int_equal(waitpid(agent, &status, 0), agent);
    return status;
}

static void ranks_had_what_a_batch_daemon_sent_that_may_be_gone(void **state)
{
    (void)state;
    assert_int_equal(signal_agent_as("slurmstepd", "slurmstepd"), 0);
    assert_int_equal(signal_agent_as("sge_shepherd", "gone"), 0);
    assert_int_not_equal(signal_agent_as("bash", "bash"), 0);
}

#define SIGNALS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIGNALS_TEST(a_signal_that_both_processes_get_is_reported_once),
        SIGNALS_TEST(each_signal_that_one_process_gets_is_reported),
        SIGNALS_TEST(ranks_had_what_a_batch_daemon_sent_that_may_be_gone),
    };

    return cmocka_run_group_tests(tests, open_signals, NULL);
}
