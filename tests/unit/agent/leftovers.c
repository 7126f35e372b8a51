#include "tests/unit/unit.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/agent/sweep/leftovers.h"
#include "launcher/agent/sweep/procfs.h"
#include "launcher/agent/sweep/sweep.h"
#include "tests/unit/forbid.h"

/* An array of char with its terminating NUL is an environ whose last entry is complete. */
#define PARSE(text) dt_leftovers_parse(text, sizeof(text), "train-0badcafe", &generation)

static void environ_names_job_and_generation(void **state)
{
    uint32_t generation = 0;

    (void)state;
    assert_true(PARSE("PATH=/bin\0DTRUN_JOB_ID=train-0badcafe\0DTRUN_GENERATION=3\0A=b"));
    assert_int_equal(generation, 3);
    assert_true(PARSE("DTRUN_GENERATION=12\0DTRUN_JOB_ID=train-0badcafe"));
    assert_int_equal(generation, 12);
}

static void another_process_is_no_leftover(void **state)
{
    uint32_t generation = 7;

    (void)state;
    assert_false(PARSE(""));
    assert_false(PARSE("PATH=/bin"));
    assert_false(PARSE("DTRUN_JOB_ID=train-0badcafe")); /* set by hand */
    assert_false(PARSE("DTRUN_JOB_ID=train-0badcaff\0DTRUN_GENERATION=1"));
    assert_false(PARSE("DTRUN_JOB_ID=train-0badcafe2\0DTRUN_GENERATION=1"));
    assert_false(PARSE("XDTRUN_JOB_ID=train-0badcafe\0DTRUN_GENERATION=1"));
    assert_false(PARSE("X=DTRUN_JOB_ID=train-0badcafe\0DTRUN_GENERATION=1"));
    assert_int_equal(generation, 7);
}

static void a_truncated_environ_is_read_as_far_as_it_goes(void **state)
{
    static const char whole[] = "DTRUN_JOB_ID=train-0badcafe\0DTRUN_GENERATION=1";
    uint32_t generation = 7;

    (void)state;
    for (size_t n = 0; n < sizeof whole; n++)
        assert_false(dt_leftovers_parse(whole, n, "train-0badcafe", &generation));
    assert_true(dt_leftovers_parse(whole, sizeof whole, "train-0badcafe", &generation));
}

static bool was_killed(pid_t pid)
{
    int status;

    return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/* A process of generation 1 of the job. */
static pid_t start_rank(char *job_id)
{
    char *env[] = { job_id, (char *)(uintptr_t) "DTRUN_GENERATION=1", NULL };
    char *argv[] = { (char *)(uintptr_t) "sleep", (char *)(uintptr_t) "60", NULL };
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execve("/bin/sleep", argv, env);
        _exit(127);
    }
    return pid;
}

/* Called in a child of the test. */
static bool kill_without_pidfd(void)
{
    static struct dt_groups groups;
    char job_id[64];
    struct dt_leftover left;
    uint64_t id;
    pid_t pid;

    alarm(300);
    if (getrandom(&id, sizeof id, 0) != sizeof id || !forbid(SYS_pidfd_open, EPERM))
        return false;
    snprintf(job_id, sizeof job_id, "DTRUN_JOB_ID=leftovers-%" PRIx64, id);
    pid = start_rank(job_id);
    if (dt_sweep_kill(&groups, DT_SPARE_NONE, NULL, NULL, NULL) != 1 || !was_killed(pid))
        return false;
    pid = start_rank(job_id);
    while (dt_leftovers_kill(strchr(job_id, '=') + 1, 2, &left) == 0)
        usleep(1000); /* it has not executed sleep yet */
    return left.pid == pid && left.error == 0 && was_killed(pid);
}

static void a_container_may_refuse_pidfds(void **state)
{
    pid_t pid = fork();
    int status;

    (void)state;
    if (pid == 0)
        _exit(!kill_without_pidfd());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* Called in a child of the test, with a process that this user may not kill. It ends when the other
 * end of its pipe is closed. */
static bool sweep_stranger(void)
{
    static struct dt_groups groups;
    struct dt_leftover left;
    int ends[2];
    char byte;
    pid_t pid;

    alarm(300);
    if (pipe(ends) < 0)
        return false;
    pid = fork();
    if (pid == 0) {
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) != 0);
    }
    if (setresuid(65534, 65534, 65534) < 0)
        return false;
    return dt_sweep_kill(&groups, DT_SPARE_NONE, &left, NULL, NULL) == 1 && left.pid == pid &&
           left.error == EPERM && dt_sweep_all(&groups, 3600 * 1000);
}

static void a_process_of_another_user_is_not_waited_for(void **state)
{
    int status;
    pid_t pid;

    (void)state;
    if (getuid() != 0)
        skip(); /* needs root, to be two users */
    pid = fork();
    if (pid == 0)
        _exit(!sweep_stranger());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

struct forking {
    pthread_barrier_t meet;
    pid_t child;
};

static void *fork_and_stay(void *arg)
{
    struct forking *f = arg;

    f->child = fork();
    if (f->child == 0) {
        pause();
        _exit(0);
    }
    pthread_barrier_wait(&f->meet);
    pthread_barrier_wait(&f->meet);
    return NULL;
}

static void children_of_any_thread_count(void **state)
{
    struct forking f;
    pthread_t thread;

    (void)state;
    assert_false(dt_procfs_has_children(getpid()));
    assert_int_equal(pthread_barrier_init(&f.meet, NULL, 2), 0);
    assert_int_equal(pthread_create(&thread, NULL, fork_and_stay, &f), 0);
    pthread_barrier_wait(&f.meet);
    assert_true(dt_procfs_has_children(getpid()));
    assert_false(dt_procfs_has_children(f.child));
    kill(f.child, SIGKILL);
    assert_int_equal(waitpid(f.child, NULL, 0), f.child);
    assert_false(dt_procfs_has_children(getpid()));
    pthread_barrier_wait(&f.meet);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&f.meet);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(environ_names_job_and_generation),
        cmocka_unit_test(another_process_is_no_leftover),
        cmocka_unit_test(a_truncated_environ_is_read_as_far_as_it_goes),
        cmocka_unit_test(a_container_may_refuse_pidfds),
        cmocka_unit_test(a_process_of_another_user_is_not_waited_for),
        cmocka_unit_test(children_of_any_thread_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
