/* Ranks that die, stall, disagree, or are not what they say, and strangers that connect. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/dtrun.h"
#include "runtime/wire/auth.h"
#include "runtime/wire/env.h"
#include "runtime/wire/hostshm.h"
#include "tests/unit/checks.h"
#include "tests/unit/forbid.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/testjob.h"

enum { WORDS = 1024 * 1024 };

/* What the ranks report to the test. */
static struct shared {
    _Atomic int64_t died_us;
    _Atomic int ready;
    _Atomic int64_t steps[TESTJOB_RANKS];
    _Atomic int code[TESTJOB_RANKS];
    char text[TESTJOB_RANKS][512];
} * shared;

static struct testjob_result result;

static int setup(void **state)
{
    (void)state;
    if (!shared)
        shared = testjob_shared(sizeof *shared);
    memset((void *)shared, 0, sizeof *shared);
    return 0;
}

static int run(const char *hosts, int (*body)(int, void *), void *arg)
{
    struct testjob_plan plan = { .hosts = hosts, .body = body, .arg = arg };

    return testjob_run(&plan, &result);
}

/* ---- death ---- */

enum phase {
    IN_INIT,
    BEFORE_CALL,
    IN_SMALL,
    IN_LARGE,
    IN_BROADCAST,
    IN_GATHER,
    IN_REDUCE,
    IN_REDUCE_SCATTER,
    IN_ALL_TO_ALL,
    IN_ROOTED,
    IN_BARRIER,
    IN_FINALIZE,
    PHASES
};

struct death {
    enum phase phase;
    int victim;
};

static void die(void)
{
    shared->died_us = testjob_now_us();
    raise(SIGKILL);
}

/* Gathers to rank 0 and scatters back. */
static dt_result_t gather_and_scatter(const float *in, float *all)
{
    static float part[WORDS / 20];
    dt_result_t r = dt_gather(DT_WORLD, in, all, WORDS / 20, DT_F32, 0);

    return r == DT_OK ? dt_scatter(DT_WORLD, all, part, WORDS / 20, DT_F32, 0) : r;
}

/* Makes calls until one fails. on_tick kills the victim in the middle of its calls. */
static dt_result_t call_on(enum phase phase, const float *in, float *buf)
{
    dt_result_t r = DT_OK;

    while (r == DT_OK) {
        if (phase == IN_SMALL)
            r = dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, 10, DT_F32, DT_MAX);
        else if (phase == IN_LARGE)
            r = dt_all_reduce(DT_WORLD, in, buf, WORDS, DT_F32, DT_MAX);
        else if (phase == IN_BROADCAST)
            r = dt_broadcast(DT_WORLD, buf, WORDS, DT_F32, dt_size() - 1);
        else if (phase == IN_GATHER)
            r = dt_all_gather(DT_WORLD, in, buf, WORDS / 10, DT_F32);
        else if (phase == IN_REDUCE)
            r = dt_reduce(DT_WORLD, in, buf, WORDS, DT_F32, DT_MAX, 0);
        else if (phase == IN_REDUCE_SCATTER)
            r = dt_reduce_scatter(DT_WORLD, in, buf, WORDS / 10, DT_F32, DT_MAX);
        else if (phase == IN_ALL_TO_ALL)
            r = dt_all_to_all(DT_WORLD, in, buf, WORDS / 20, DT_F32);
        else if (phase == IN_ROOTED)
            r = gather_and_scatter(in, buf);
        else
            r = dt_barrier(DT_WORLD);
    }
    return r;
}

enum { GIVEN = 1024 }; /* inputs repeat after this many words */

static void give(float *in, int rank)
{
    for (int i = 0; i < GIVEN; i++)
        in[i] = (float)(rank + i);
    for (size_t i = GIVEN; i < WORDS; i += GIVEN)
        memcpy(in + i, in, GIVEN * sizeof *in);
}

/* Inputs stay as they were, whenever a call ends. */
static bool is_given(const float *in, int rank)
{
    for (int i = 0; i < GIVEN; i++) {
        if (in[i] != (float)(rank + i))
            return false;
    }
    return memcmp(in, in + GIVEN, (WORDS - GIVEN) * sizeof *in) == 0;
}

static int mortal(int rank, void *arg)
{
    /* The search for leaks would read variables. */
    float *in = testjob_shared(WORDS * sizeof *in), *buf = testjob_shared(WORDS * sizeof *buf);
    const struct death *d = arg;
    dt_result_t r;

    give(in, rank);
    if (rank == d->victim && d->phase == IN_INIT)
        die();
    r = dt_init();
    if (d->phase != IN_INIT) {
        NEED(r == DT_OK);
        shared->ready++;
        if (rank == d->victim && (d->phase == BEFORE_CALL || d->phase == IN_FINALIZE)) {
            do
                usleep(20000);
            while (shared->ready < dt_size()); /* no rank is inside dt_init any more */
            die();
        }
        r = d->phase == IN_FINALIZE ? dt_finalize() : call_on(d->phase, in, buf);
    }
    shared->code[rank] = r;
    snprintf(shared->text[rank], sizeof shared->text[rank], "%s", dt_last_error());
    NEED(is_given(in, rank));
    if (d->phase == IN_FINALIZE || d->phase == IN_INIT)
        return 0;
    NEED(dt_barrier(DT_WORLD) == DT_ERR_PEER);
    NEED(strcmp(dt_last_error(), shared->text[rank]) == 0);
    NEED(dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM) == DT_ERR_PEER);
    NEED(dt_finalize() == DT_ERR_PEER);
    return 0;
}

static void kill_when_busy(struct testjob *job, int ms)
{
    const struct death *d = testjob_arg(job);

    (void)ms;
    if (d->phase < IN_SMALL || d->phase > IN_BARRIER || shared->died_us || shared->ready < result.n)
        return;
    shared->died_us = testjob_now_us();
    testjob_kill(job, d->victim, SIGKILL);
}

/* Others may learn later how the victim ended than that it is dead. */
static void survivors_were_told(const char *hosts, const struct death *d)
{
    int home[TESTJOB_RANKS];
    char culprit[32];

    testjob_place(hosts, home);

    /* ranks learn the hosts of others at the end of dt_init */
    snprintf(culprit, sizeof culprit, d->phase == IN_INIT ? "rank %d died" : "rank %d (host",
             d->victim);
    for (int i = 0; i < result.n; i++) {
        if (i == d->victim) {
            assert_true(WIFSIGNALED(result.ranks[i].status));
            continue;
        }
        assert_int_equal(result.ranks[i].status, 0);
        assert_int_equal(shared->code[i], DT_ERR_PEER);
        if (!strstr(shared->text[i], culprit) ||
            (home[i] == home[d->victim] && !strstr(shared->text[i], "(killed by signal 9)")))
            fail_msg("rank %d says: %s", i, shared->text[i]);
        assert_false(result.ranks[i].finalized);
        if (d->phase != IN_INIT)
            assert_true(result.ranks[i].peer_lost);
    }
}

static void a_death_ends_every_call_at_once(void **state)
{
    static const char *const placements[] = { "4", "2 2", "3 1 2", "@012020" };

    (void)state;
    for (size_t p = 0; p < sizeof placements / sizeof *placements; p++) {
        for (int phase = 0; phase < PHASES; phase++) {
            for (int victim = 0; victim < 4; victim += 3) {
                struct death d = { (enum phase)phase, victim };
                struct testjob_plan plan = {
                    .hosts = placements[p], .body = mortal, .arg = &d, .on_tick = kill_when_busy
                };

                setup(NULL);
                assert_int_equal(testjob_run(&plan, &result), 0);
                survivors_were_told(placements[p], &d);
            }
        }
    }
}

/* A rank that leaves without dt_finalize counts as dead. */
static int deserter(int rank, void *arg)
{
    dt_error_info_t info = { .size = sizeof info };

    (void)arg;
    NEED(dt_init() == DT_OK);
    shared->ready++;
    if (rank == 1) {
        while (shared->ready < dt_size()) /* no rank is inside dt_init any more */
            usleep(500);
        return 3;
    }
    NEED(dt_barrier(DT_WORLD) == DT_ERR_PEER);
    NEED(strstr(dt_last_error(), "rank 1 (host0) died or left"));
    NEED(dt_last_error_info(&info) == DT_OK && info.rank == 1 && info.signal == 0);
    if (rank == 0)
        NEED(info.status == 3 && strstr(info.message, "died or left (exit status 3)"));
    return 0;
}

static void leaving_without_finalize_is_a_death(void **state)
{
    (void)state;
    assert_int_equal(run("2 1", deserter, NULL), 0);
    assert_int_equal(result.ranks[0].status, 0);
    assert_int_equal(WEXITSTATUS(result.ranks[1].status), 3);
    assert_int_equal(result.ranks[2].status, 0);
}

/* ---- stalls ---- */

static int patient(int rank, void *arg)
{
    float x = (float)rank;

    (void)arg;
    NEED(dt_init() == DT_OK);
    shared->ready++;
    for (int i = 0; i < 400; i++) {
        NEED(dt_all_reduce(DT_WORLD, DT_IN_PLACE, &x, 1, DT_F32, DT_MAX) == DT_OK);
        usleep(500);
    }
    NEED(x == (float)(dt_size() - 1));
    NEED(dt_finalize() == DT_OK);
    return 0;
}

/* Stops rank 1 when all are busy, for longer than any rank spins. */
static void stop_and_continue(struct testjob *job, int ms)
{
    enum { STOPPED_MS = 400 };

    if (shared->ready == result.n && !shared->died_us) {
        shared->died_us = ms;
        testjob_kill(job, 1, SIGSTOP);
    } else if (shared->died_us && ms == shared->died_us + STOPPED_MS) {
        testjob_kill(job, 1, SIGCONT);
    }
}

static void a_stopped_rank_may_go_on(void **state)
{
    struct testjob_plan plan = { .hosts = "2 2", .body = patient, .on_tick = stop_and_continue };

    (void)state;
    assert_int_equal(testjob_run(&plan, &result), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(result.ranks[i].status, 0);
}

/* ---- a rank that is late to read what others publish ---- */

enum { PAGE = 64 * 1024 }; /* the largest page size */

static void *page;

/* Stops in the middle of the copy, until the other rank has gone on to wait. */
static void hold(int signo)
{
    (void)signo;
    while (!shared->ready)
        usleep(1000);
    if (mprotect(page, PAGE, PROT_READ | PROT_WRITE) != 0)
        _exit(1);
}

static int give_and_go_on(int rank, void *arg)
{
    int64_t x = rank;

    (void)arg;
    page = mmap(NULL, PAGE, rank == 0 ? PROT_READ | PROT_WRITE : PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NEED(page != MAP_FAILED && signal(SIGSEGV, hold) != SIG_ERR);
    NEED(dt_init() == DT_OK);
    NEED(dt_broadcast(DT_WORLD, page, 1, DT_I64, 0) == DT_OK);
    NEED(dt_all_reduce(DT_WORLD, &x, &x, 1, DT_I64, DT_SUM) == DT_OK && x == 1);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void see_who_waits(struct testjob *job, int ms)
{
    (void)ms;
    shared->ready |= (testjob_call(job, 0) & 0xff) == (DT_HOSTSHM_INSIDE | DT_CALL_ALL_REDUCE);
}

/* Otherwise the agent would take it for the rank that does not join the call. */
static void a_rank_that_waits_to_publish_its_data_is_inside_its_call(void **state)
{
    struct testjob_plan plan = { .hosts = "2", .body = give_and_go_on, .on_tick = see_who_waits };

    (void)state;
    assert_int_equal(testjob_pass(&plan), 0);
}

/* ---- calls that do not match ---- */

enum mismatch { COUNT, DTYPE, OP, KIND, ROOT, LARGE_SMALL, LEAVES, EXTRA, WAY, PARTS, MISMATCHES };

static dt_result_t odd_call(enum mismatch q, bool odd, float *buf)
{
    switch (q) {
    case COUNT:
        return dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, odd ? 11 : 10, DT_F32, DT_SUM);
    case DTYPE:
        return dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, 10, odd ? DT_I32 : DT_F32, DT_SUM);
    case OP:
        return dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, WORDS, DT_F32, odd ? DT_MAX : DT_SUM);
    case KIND:
        return odd ? dt_barrier(DT_WORLD)
                   : dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, WORDS, DT_F32, DT_SUM);
    case ROOT:
        return dt_broadcast(DT_WORLD, buf, WORDS, DT_F32, odd);
    case LARGE_SMALL:
        return dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, odd ? 1 : WORDS, DT_F32, DT_SUM);
    case LEAVES:
        return odd ? dt_finalize() : dt_barrier(DT_WORLD);
    case WAY:
        return odd ? dt_broadcast(DT_WORLD, buf, 1, DT_F32, 0) : dt_barrier(DT_WORLD);
    case PARTS:
        return odd ? dt_barrier(DT_WORLD)
                   : dt_all_gather(DT_WORLD, DT_IN_PLACE, buf, WORDS / 10, DT_F32);
    default:
        return odd ? dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, 0, DT_F32, DT_SUM)
                   : dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, 10, DT_F32, DT_SUM);
    }
}

struct try_mismatch {
    enum mismatch about;
    int odd;
    bool leave; /* ranks end as soon as they know */
};

static int mismatching_rank(int rank, void *arg)
{
    static float buf[WORDS];
    const struct try_mismatch *d = arg;
    dt_result_t r;

    NEED(dt_init() == DT_OK);
    r = dt_barrier(DT_WORLD); /* others may already be beyond it and have failed */
    if (r == DT_OK)
        r = odd_call(d->about, rank == d->odd, buf);
    NEED(r == DT_ERR_MISMATCH);
    NEED(strstr(dt_last_error(), "called"));
    if (d->about != LEAVES || rank != d->odd)
        NEED(dt_barrier(DT_WORLD) == DT_ERR_MISMATCH);
    if (!d->leave)
        testjob_meet(&shared->ready, dt_size());
    return 0;
}

static void try_mismatch(const char *hosts, enum mismatch about, bool leave)
{
    struct try_mismatch d = { about, 1, leave };

    setup(NULL);
    if (run(hosts, mismatching_rank, &d) != 0)
        fail_msg("hosts %s, mismatch %d: somebody hangs", hosts, about);
    for (int i = 0; i < result.n; i++) {
        if (result.ranks[i].status != 0)
            fail_msg("hosts %s, mismatch %d, leave %d: rank %d failed", hosts, about, leave, i);
    }
}

static void calls_that_do_not_match_are_named(void **state)
{
    static const char *const placements[] = { "3", "1 1", "2 2", "1 1 1", "1 1 1 1", "1 2 1" };

    (void)state;
    for (size_t p = 0; p < sizeof placements / sizeof *placements; p++) {
        for (int q = 0; q < MISMATCHES; q++) {
            try_mismatch(placements[p], (enum mismatch)q, false);
            try_mismatch(placements[p], (enum mismatch)q, true);
        }
    }
}

/* ---- the socket to the agent ---- */

static int cut_off(int rank, void *arg)
{
    (void)arg;
    if (rank == 0) {
        int fd = atoi(getenv(DT_ENV_AGENT_FD));

        close(fd);
        NEED(dt_init() == DT_ERR_IO);
        NEED(strstr(dt_last_error(), "wrapper"));
        NEED(open("/dev/null", O_RDONLY) >= 0 && dup2(0, fd) == fd);
        NEED(dt_init() == DT_ERR_IO);
        setenv(DT_ENV_RANK, "zero", 1);
        NEED(dt_init() == DT_ERR_IO);
        NEED(strstr(dt_last_error(), DT_ENV_RANK));
        return 9;
    }
    NEED(dt_init() == DT_ERR_PEER);
    NEED(strstr(dt_last_error(), "rank 0 died"));
    return 0;
}

static void a_closed_socket_is_explained(void **state)
{
    (void)state;
    assert_int_equal(run("2", cut_off, NULL), 0);
    assert_int_equal(WEXITSTATUS(result.ranks[0].status), 9);
    assert_int_equal(result.ranks[1].status, 0);
    assert_false(result.ranks[0].linked);
}

static int twins(int rank, void *arg)
{
    int status;
    pid_t pid;

    (void)rank;
    (void)arg;
    int early = fork();
    if (early == 0) { /* a second process shares the socket while the first is linked */
        char both[80];

        while (!shared->ready)
            usleep(1000);
        NEED(dt_init() == DT_ERR_STATE);
        snprintf(both, sizeof both, "process %d has called dt_init for this rank already; this is",
                 (int)getppid());
        NEED(strstr(dt_last_error(), both));
        snprintf(both, sizeof both, " process %d", (int)getpid());
        NEED(strstr(dt_last_error(), both));
        _exit(7);
    }
    NEED(dt_init() == DT_OK);
    shared->ready = 1;
    pid = fork();
    if (pid == 0) {
        float x = 1;

        NEED(dt_all_reduce(DT_WORLD, DT_IN_PLACE, &x, 1, DT_F32, DT_SUM) == DT_ERR_STATE);
        NEED(strstr(dt_last_error(), "forked"));
        dt_step(99);
        _exit(7);
    }
    NEED(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
    NEED(waitpid(early, &status, 0) == early && WEXITSTATUS(status) == 7);
    NEED(dt_barrier(DT_WORLD) == DT_OK);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void only_one_process_is_a_rank(void **state)
{
    (void)state;
    assert_int_equal(run("1", twins, NULL), 0);
    assert_int_equal(result.ranks[0].status, 0);
    assert_int_equal(result.ranks[0].step, -1);
}

static int unlockable(int rank, void *arg)
{
    (void)rank;
    (void)arg;
    NEED(forbid(SYS_fcntl, ENOLCK));
    NEED(dt_init() == DT_ERR_IO);
    NEED(strcmp(dt_last_error(),
                "rank 0: a lock of the socket to dtrun-agent: No locks available") == 0);
    return 9;
}

static void a_socket_that_cannot_be_locked_is_explained(void **state)
{
    (void)state;
    assert_int_equal(run("1", unlockable, NULL), 0);
    assert_int_equal(WEXITSTATUS(result.ranks[0].status), 9);
}

static int misnamed(int rank, void *name)
{
    dt_error_info_t info = { .size = sizeof info };

    if (rank == 1) {
        setenv(name, strcmp(name, DT_ENV_NODES) == 0 ? "1" : "0", 1);
        NEED(dt_init() == DT_ERR_STATE);
        NEED(strstr(dt_last_error(), name));
        NEED(dt_last_error_info(&info) == DT_OK && strcmp(info.operation, "dt_init") == 0);
        return 9;
    }
    NEED(dt_init() == DT_ERR_PEER);
    NEED(dt_last_error_info(&info) == DT_OK && info.rank == 1);
    NEED(strcmp(info.operation, "dt_init") == 0);
    return 0;
}

static void the_socket_determines_the_rank(void **state)
{
    static char *const names[] = { DT_ENV_RANK, DT_ENV_GENERATION, DT_ENV_NODES, DT_ENV_SIZE };

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(run(i < 2 ? "2" : "1 1", misnamed, names[i]), 0);
        assert_int_equal(WEXITSTATUS(result.ranks[1].status), 9);
        assert_int_equal(result.ranks[0].status, 0);
    }
}

/* Both ranks wait. The one that has closed the socket to its agent notices it and is to blame. */
static int careless(int rank, void *arg)
{
    dt_error_info_t info = { .size = sizeof info };
    int x = 0;

    (void)arg;
    NEED(dt_init() == DT_OK && dt_barrier(DT_WORLD) == DT_OK);
    if (rank == 0)
        NEED(close(atoi(getenv(DT_ENV_AGENT_FD))) == 0);
    NEED(dt_recv(DT_WORLD, &x, 1, DT_I32, rank ^ 1) == DT_ERR_IO);
    NEED(!strstr(dt_last_error(), "has ended"));
    NEED(rank || strstr(dt_last_error(), "its socket to dtrun-agent"));
    NEED(dt_last_error_info(&info) == DT_OK && info.rank == 0);
    fprintf(stderr, "rank %d: %s\n", rank, dt_last_error());
    return 0;
}

static void a_rank_that_closes_its_socket_learns_so(void **state)
{
    (void)state;
    assert_int_equal(run("1 1", careless, NULL), 0);
    assert_int_equal(result.ranks[0].status, 0);
    assert_int_equal(result.ranks[1].status, 0);
}

/* Neither rank makes the communicator in memory of its own, to wait there for the other. */
static int closes_and_duplicates(int rank, void *both)
{
    dt_comm_t *dup;

    NEED(dt_init() == DT_OK && dt_barrier(DT_WORLD) == DT_OK);
    if (rank == 0 || both)
        NEED(close(atoi(getenv(DT_ENV_AGENT_FD))) == 0);
    NEED(dt_comm_dup(DT_WORLD, &dup) == DT_ERR_IO && dup == DT_COMM_NULL);
    NEED(strstr(dt_last_error(), ", which the program must leave open: ") ||
         strstr(dt_last_error(), "; the program must leave it open"));
    NEED(dt_finalize() == DT_ERR_IO);
    return 0;
}

static void a_communicator_needs_the_socket(void **state)
{
    (void)state;
    for (int both = 0; both < 2; both++) {
        assert_int_equal(run("2", closes_and_duplicates, both ? state : NULL), 0);
        assert_int_equal(result.ranks[0].status, 0);
        assert_int_equal(result.ranks[1].status, 0);
    }
}

/* Rank 1 leaves. Rank 0 makes no call, but watches. */
static int watches(int rank, void *arg)
{
    (void)arg;
    NEED(dt_init() == DT_OK);
    testjob_meet(&shared->ready, 2); /* no rank is inside dt_init any more */
    while (rank == 0 && dt_comm_status(DT_WORLD) == DT_OK)
        usleep(1000);
    NEED(rank == 1 || dt_comm_status(DT_WORLD) == DT_ERR_PEER);
    return 0;
}

static void a_rank_that_watches_is_no_cause(void **state)
{
    (void)state;
    for (int hosts = 1; hosts < 3; hosts++) {
        shared->ready = 0;
        assert_int_equal(run(hosts == 1 ? "2" : "1 1", watches, NULL), 0);
        assert_int_equal(result.ranks[0].status, 0);
        assert_true(result.ranks[0].peer_lost && !result.ranks[1].peer_lost);
    }
}

/* Rank 1's buffer is not in memory that it may use. The connection has not broken. */
static int passes_no_memory(int rank, void *sends)
{
    enum { BYTES = 1 << 20 };
    bool to_one = !sends;
    dt_error_info_t info = { .size = sizeof info };
    void *p = mmap(NULL, BYTES, rank == 1 ? PROT_NONE : PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    dt_result_t r;

    NEED(p != MAP_FAILED && dt_init() == DT_OK);
    r = (rank == 0) == to_one ? dt_send(DT_WORLD, p, BYTES, DT_I8, rank ^ 1)
                              : dt_recv(DT_WORLD, p, BYTES, DT_I8, rank ^ 1);
    if (rank == 1)
        shared->ready = 1;
    if (rank == 0 && to_one && r == DT_OK) { /* the kernel has taken the data */
        while (!shared->ready)               /* rank 1 would fail because this rank has left */
            usleep(1000);
        return 0;
    }
    NEED(r == DT_ERR_IO && dt_last_error_info(&info) == DT_OK && info.rank == 1);
    NEED(strstr(info.message, ": Bad address"));
    NEED(rank == 0 || info.error == EFAULT);
    return 0;
}

static void a_buffer_that_is_no_memory_is_no_lost_peer(void **state)
{
    for (int sends = 0; sends < 2; sends++) {
        shared->ready = 0;
        assert_int_equal(run("1 1", passes_no_memory, sends ? state : NULL), 0);
        assert_int_equal(result.ranks[0].status, 0);
        assert_int_equal(result.ranks[1].status, 0);
    }
}

/* A program that closes all descriptors, as daemons do, has one of its own where the socket was. */
static int forgetful(int rank, void *arg)
{
    int fd = atoi(getenv(DT_ENV_AGENT_FD)), own[2], x = 0;
    char text[8];

    (void)arg;
    NEED(dt_init() == DT_OK && dt_barrier(DT_WORLD) == DT_OK);
    if (rank == 0) {
        NEED(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, own) == 0 && dup2(own[0], fd) == fd);
        NEED(send(own[1], "mine", 5, 0) == 5);
        NEED(dt_comm_set_timeout(DT_WORLD, 1000) == DT_ERR_IO);
        NEED(strstr(dt_last_error(), ", which the program must leave open: "));
    }
    NEED(dt_recv(DT_WORLD, &x, 1, DT_I32, rank ^ 1) == DT_ERR_IO);
    NEED(strstr(dt_last_error(), "its socket to dtrun-agent, descriptor "));
    NEED(dt_finalize() == DT_ERR_IO);
    if (rank == 0) {
        NEED(recv(own[1], text, sizeof text, MSG_DONTWAIT) < 0 && errno == EAGAIN);
        NEED(recv(fd, text, sizeof text, MSG_DONTWAIT) == 5 && strcmp(text, "mine") == 0);
    }
    return 0;
}

static void a_descriptor_in_the_place_of_the_socket_is_left_alone(void **state)
{
    (void)state;
    assert_int_equal(run("1 1", forgetful, NULL), 0);
    assert_int_equal(result.ranks[0].status, 0);
    assert_int_equal(result.ranks[1].status, 0);
}

/* ---- watched steps ---- */

static int stepper(int rank, void *arg)
{
    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int64_t s = 0; s < 10; s++) {
        dt_step(s);
        shared->steps[rank] = s + 1;
    }
    NEED(dt_finalize() == DT_ERR_PEER); /* the agent makes rank 1 exit */
    return 0;
}

static void watch(struct testjob *job, int rank, uint16_t port)
{
    (void)port;
    if (rank == 0)
        testjob_watch_step(job, 0, 4);
    if (rank == 1)
        testjob_watch_step(job, 1, 6);
}

static void act(struct testjob *job, int rank, int64_t step)
{
    if (rank == 0)
        testjob_go(job, 0, -1);
    else if (step == 6)
        testjob_go(job, 1, 33);
}

static void a_watched_step_is_exact(void **state)
{
    struct testjob_plan plan = { .hosts = "2", .body = stepper, .on_hello = watch, .on_step = act };

    (void)state;
    assert_int_equal(testjob_run(&plan, &result), 0);
    assert_int_equal(WEXITSTATUS(result.ranks[1].status), 33);
    assert_int_equal(result.ranks[1].step, 6);
    assert_int_equal(shared->steps[1], 6);
    assert_int_equal(result.ranks[0].step, 9);
    assert_int_equal(shared->steps[0], 10);
}

/* ---- strangers ---- */

static int strangers[40];

static int knock(uint16_t port)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    inet_pton(AF_INET, "127.0.0.1", &a.sin_addr);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

/* Before the job makes its own connections there are silent callers, noise, half a hello, a hello
 * of another generation, and callers that have already gone. */
static void strangers_come_first(struct testjob *job, int rank, uint16_t port)
{
    static int hellos;
    char noise[4096];

    (void)rank;
    hellos = rank < 0 ? 0 : hellos + 1;
    if (port) {
        for (int i = 0; i < 20; i++) {
            int fd = knock(port);
            size_t n = i % 4 == 0 ? 0 : i % 4 == 1 ? sizeof noise : i % 4 == 2 ? 20 : DT_AUTH_HELLO;

            memset(noise, i % 4 == 3 ? 0 : 'x', sizeof noise);
            memcpy(noise, "DTRT\2\0\0\0\2\0\0\0", 12);
            if (n)
                assert_true(send(fd, noise, n, MSG_NOSIGNAL) > 0);
            if (i < 4)
                close(fd);
            for (int k = 0; i >= 4 && k < 40; k++) {
                if (strangers[k] == 0) {
                    strangers[k] = fd;
                    break;
                }
            }
        }
    }
    if (hellos == result.n)
        testjob_table(job);
}

static void strangers_that_connect_change_nothing(void **state)
{
    struct testjob_plan plan = {
        .hosts = "2 1", .body = patient, .hold_table = true, .on_hello = strangers_come_first
    };
    char c;

    (void)state;
    assert_int_equal(testjob_run(&plan, &result), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(result.ranks[i].status, 0);
    for (int k = 0; k < 32; k++) {
        assert_true(strangers[k] > 0);
        assert_true(recv(strangers[k], &c, 1, MSG_DONTWAIT) <= 0);
        close(strangers[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKS_SETUP("37", a_death_ends_every_call_at_once, setup),
        cmocka_unit_test_setup(leaving_without_finalize_is_a_death, setup),
        cmocka_unit_test_setup(a_stopped_rank_may_go_on, setup),
        cmocka_unit_test_setup(a_rank_that_waits_to_publish_its_data_is_inside_its_call, setup),
        CHECKS_SETUP("2, 27, 28, 29, 30, 31, 32", calls_that_do_not_match_are_named, setup),
        cmocka_unit_test_setup(a_closed_socket_is_explained, setup),
        CHECKS_SETUP("26, 34", only_one_process_is_a_rank, setup),
        cmocka_unit_test_setup(a_socket_that_cannot_be_locked_is_explained, setup),
        CHECKS_SETUP("34", the_socket_determines_the_rank, setup),
        cmocka_unit_test_setup(a_rank_that_closes_its_socket_learns_so, setup),
        cmocka_unit_test_setup(a_communicator_needs_the_socket, setup),
        cmocka_unit_test_setup(a_rank_that_watches_is_no_cause, setup),
        cmocka_unit_test_setup(a_buffer_that_is_no_memory_is_no_lost_peer, setup),
        cmocka_unit_test_setup(a_descriptor_in_the_place_of_the_socket_is_left_alone, setup),
        cmocka_unit_test_setup(a_watched_step_is_exact, setup),
        CHECKS_SETUP("35", strangers_that_connect_change_nothing, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
