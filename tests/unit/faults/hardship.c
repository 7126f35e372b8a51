/* Ranks under hard conditions: signals that interrupt everything, children that come and go, few
 * open files, and ranks that may make no system calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/checks.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/testjob.h"

enum { COUNT = 30000, ROUNDS = 40 };

/* ---- every kind of call, once ---- */

static int64_t sum(int64_t i)
{
    return dt_size() * i + dt_size() * (dt_size() - 1) / 2;
}

static int exchange_with_next(int64_t *buf)
{
    int rank = dt_rank();

    for (int a = 0; a + 1 < dt_size(); a++) {
        buf[0] = rank == a ? a : -1;
        if (rank == a)
            NEED(dt_send(DT_WORLD, buf, COUNT, DT_I64, a + 1) == DT_OK);
        if (rank == a + 1)
            NEED(dt_recv(DT_WORLD, buf, COUNT, DT_I64, a) == DT_OK && buf[0] == a);
    }
    return 0;
}

static int all_kinds_of_calls(void)
{
    static int64_t in[COUNT * 4], out[COUNT * 4];
    dt_comm_t *comm;

    for (int64_t i = 0; i < COUNT; i++)
        in[i] = dt_rank() + i;
    NEED(dt_all_reduce(DT_WORLD, in, out, COUNT, DT_I64, DT_SUM) == DT_OK);
    for (int64_t i = 0; i < COUNT; i++)
        NEED(out[i] == sum(i));
    NEED(dt_all_reduce(DT_WORLD, DT_IN_PLACE, out, 1, DT_I64, DT_MAX) == DT_OK);
    NEED(out[0] == sum(0));
    NEED(dt_all_gather(DT_WORLD, in, out, COUNT, DT_I64) == DT_OK);
    for (int r = 0; r < dt_size(); r++)
        NEED(out[(r + 1) * COUNT - 1] == r + COUNT - 1);
    NEED(exchange_with_next(out) == 0);
    NEED(dt_comm_split(DT_WORLD, 0, -dt_rank(), &comm) == DT_OK);
    NEED(dt_broadcast(comm, in, COUNT, DT_I64, 0) == DT_OK && in[0] == dt_size() - 1);
    NEED(dt_comm_free(comm) == DT_OK);
    NEED(dt_barrier(DT_WORLD) == DT_OK);
    return 0;
}

static void run_all(int (*body)(int rank, void *arg))
{
    static const char *const placements[] = { "3", "2 1" };

    for (size_t i = 0; i < sizeof placements / sizeof *placements; i++)
        testjob_must_pass(placements[i], body, NULL);
}

/* ---- signals ---- */

static volatile sig_atomic_t interrupts;

static void interrupt(int signo)
{
    (void)signo;
    interrupts++;
}

/* Without SA_RESTART, so that signals interrupt every wait of the library. */
static void catch (int signo)
{
    struct sigaction action = { .sa_handler = interrupt };

    sigaction(signo, &action, NULL);
}

/* Makes a child, for SIGCHLD. The child has none of the library's descriptors. */
static int beget(void)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        for (int fd = 3; fd < 1024; fd++) {
            int flags = fcntl(fd, F_GETFD);

            if (flags >= 0 && !(flags & FD_CLOEXEC))
                _exit(3);
        }
        execl("/bin/true", "true", (char *)NULL);
        _exit(4);
    }
    while (waitpid(pid, &status, 0) < 0)
        NEED(errno == EINTR);
    NEED(status == 0);
    return 0;
}

static int stormy(int rank, void *arg)
{
    const struct itimerval often = { { 0, 300 }, { 0, 300 } }, never = { 0 };

    (void)rank;
    (void)arg;
    catch (SIGALRM);
    catch (SIGCHLD);
    setitimer(ITIMER_REAL, &often, NULL);
    NEED(dt_init() == DT_OK);
    for (int i = 0; i < ROUNDS; i++) {
        NEED(all_kinds_of_calls() == 0);
        NEED(i % 10 || beget() == 0);
    }
    NEED(dt_finalize() == DT_OK);
    setitimer(ITIMER_REAL, &never, NULL);
    NEED(interrupts > ROUNDS);
    return 0;
}

static void storms_of_signals_change_nothing(void **state)
{
    (void)state;
    run_all(stormy);
}

/* ---- few open files ---- */

static struct outcomes {
    _Atomic int well, told;
} * outcomes;

/* Rank 1 may open few files. Either every call succeeds, or every rank learns which one failed. */
static int poor(int rank, void *arg)
{
    struct rlimit limit = { 3 + (rlim_t) * (int *)arg, 3 + (rlim_t) * (int *)arg };
    dt_comm_t *comm;
    dt_result_t r;

    if (rank == 1)
        NEED(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    r = dt_init();
    if (r == DT_OK)
        r = dt_barrier(DT_WORLD);
    if (r == DT_OK)
        r = dt_comm_dup(DT_WORLD, &comm);
    if (r == DT_OK)
        r = dt_barrier(comm);
    if (r == DT_OK)
        r = dt_finalize();
    if (r != DT_OK)
        NEED(*dt_last_error());
    if (r != DT_OK && rank == 1)
        NEED(strstr(dt_last_error(), "open files"));
    if (rank == 1)
        *(r == DT_OK ? &outcomes->well : &outcomes->told) += 1;
    return r == DT_OK ? 0 : 7;
}

static void too_few_open_files_are_reported(void **state)
{
    static const char *const placements[] = { "2", "1 1 1" };
    struct testjob_result result;

    (void)state;
    outcomes = testjob_shared(sizeof *outcomes);
    for (size_t p = 0; p < 2; p++) {
        outcomes->well = outcomes->told = 0;
        for (int files = 0; files < 12; files++) {
            struct testjob_plan plan = { .hosts = placements[p], .body = poor, .arg = &files };

            assert_int_equal(testjob_run(&plan, &result), 0);
            for (int i = 1; i < result.n; i++)
                assert_int_equal(result.ranks[i].status, result.ranks[0].status);
            assert_true(result.ranks[0].status == 0 || WEXITSTATUS(result.ranks[0].status) == 7);
        }
        assert_true(outcomes->well > 0 && outcomes->told > 0);
    }
}

/* All ranks know which rank prevented the new communicator. */
static int poor_later(int rank, void *arg)
{
    dt_error_info_t info = { .size = sizeof info };
    dt_comm_t *comm;
    int next;

    (void)arg;
    NEED(dt_init() == DT_OK && dt_barrier(DT_WORLD) == DT_OK);
    NEED((next = open("/dev/null", O_RDONLY)) >= 0 && close(next) == 0);
    if (rank == 1)
        NEED(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ (rlim_t)next, (rlim_t)next }) == 0);
    NEED(dt_comm_dup(DT_WORLD, &comm) == DT_ERR_IO && comm == DT_COMM_NULL);
    NEED(dt_last_error_info(&info) == DT_OK && info.rank == 1 && *info.comm);
    NEED(strcmp(info.operation, "dt_comm_dup") == 0);
    NEED(dt_comm_dup((dt_comm_t *)&info, &comm) == DT_ERR_ARG);
    NEED(dt_last_error_info(&info) == DT_OK && strcmp(info.operation, "dt_comm_dup") == 0);
    return dt_finalize() == DT_OK ? 0 : 1;
}

static void a_rank_that_lacks_files_for_a_communicator_is_named(void **state)
{
    (void)state;
    run_all(poor_later);
}

/* ---- no system calls ---- */

/* From now on only allocations in the process's own memory, and its exit, are allowed. */
static bool forbid_the_system(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_brk, 5, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_munmap, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof filter / sizeof *filter, filter };

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static int alone_calls(dt_comm_t *comm)
{
    dt_all_reduce_options_t twice = DT_ALL_REDUCE_OPTIONS_INIT;
    float in[100], out[100];

    twice.prescale = 2;
    for (int i = 0; i < 100; i++)
        in[i] = (float)i;
    if (dt_all_reduce(comm, in, out, 100, DT_F32, DT_AVG) != DT_OK || out[99] != 99)
        return 11;
    if (dt_all_reduce_with(comm, in, out, 100, DT_F32, DT_SUM, &twice) != DT_OK || out[99] != 198)
        return 12;
    if (dt_broadcast(comm, out, 100, DT_F32, 0) != DT_OK || dt_barrier(comm) != DT_OK)
        return 13;
    if (dt_all_gather(comm, in, out, 100, DT_F32) != DT_OK || out[99] != 99)
        return 14;
    if (dt_all_to_all(comm, in, out, 100, DT_F32) != DT_OK || out[99] != 99)
        return 15;
    if (dt_reduce_scatter(comm, in, out, 100, DT_F32, DT_SUM) != DT_OK || out[99] != 99)
        return 16;
    return dt_all_reduce(comm, in, out, 100, DT_F32, DT_ADASUM) == DT_OK && out[99] == 99 ? 0 : 17;
}

/* A rank that leaves ends the calls of others, so all wait, in memory alone, until all have made
 * theirs. (The first call looks for a GPU driver.) */
static int alone(int rank, void *arg)
{
    _Atomic int *through = arg;
    int all, wrong;
    dt_comm_t *self;

    NEED(dt_init() == DT_OK);
    all = dt_size();
    NEED(dt_comm_split(DT_WORLD, rank, 0, &self) == DT_OK);
    NEED(alone_calls(self) == 0 && forbid_the_system());
    wrong = alone_calls(self) || (all == 1 && alone_calls(DT_WORLD));
    for (*through += 1; *through < all;)
        ;
    _exit(wrong ? 1 : 9);
}

static void one_rank_makes_no_system_calls(void **state)
{
    static const char *const placements[] = { "1", "2", "1 1" };
    struct testjob_result result;

    (void)state;
#ifdef __SANITIZE_ADDRESS__
    print_message("a sanitizer asks the system for itself\n");
    skip();
#endif
    for (size_t p = 0; p < sizeof placements / sizeof *placements; p++) {
        _Atomic int *through = testjob_shared(sizeof *through);
        struct testjob_plan plan = { .hosts = placements[p],
                                     .body = alone,
                                     .arg = (void *)through };

        assert_int_equal(testjob_run(&plan, &result), 0);
        for (int i = 0; i < result.n; i++)
            assert_int_equal(WEXITSTATUS(result.ranks[i].status), 9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKS("26", storms_of_signals_change_nothing),
        CHECKS("26", too_few_open_files_are_reported),
        cmocka_unit_test(a_rank_that_lacks_files_for_a_communicator_is_named),
        CHECKS("4", one_rank_makes_no_system_calls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
