/* Jobs in which one rank, the victim, is disturbed wherever that can be: a call of the system
 * fails, or the rank is killed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/wire/env.h"
#include "tests/unit/checks.h"
#include "tests/unit/faults.h"
#include "tests/unit/faults/everycall.h"
#include "tests/unit/sanitized.h"
#include "tests/unit/testjob.h"

enum {
    DESCRIPTORS = 256,
    LEAK = 3, /* exit codes of ranks */
    SILENT = 4,
};

/* So many calls fail one by one; then each is so many halves later than the one before. And in so
 * many places ranks die in a call. */
enum { EACH = SANITIZED ? 1 : 8, HALVES = SANITIZED ? 4 : 1, DEATHS = SANITIZED ? 2 : 10 };

struct trial {
    int victim;
    const struct fault *fault;
    unsigned k;      /* which call suffers it, or the passage at which the victim dies */
    size_t death_in; /* index of the call in everycalls */
};

/* What ranks report. */
static struct shared {
    bool struck;
    unsigned passages;
    _Atomic int ready;
    int code[TESTJOB_RANKS];
    size_t at[TESTJOB_RANKS]; /* index of the call that failed */
    char text[TESTJOB_RANKS][512];
} * shared;

static struct testjob_result result;
static char checkpoints[] = "/dev/shm/dtrun-disturbed.XXXXXX";

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    return at->level > 0 ? remove(path) : 0;
}

static int run(const char *hosts, int (*body)(int, void *), struct trial *trial)
{
    struct testjob_plan plan = { .hosts = hosts, .body = body, .arg = trial };

    memset((void *)shared, 0, sizeof *shared);
    nftw(checkpoints, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return testjob_run(&plan, &result);
}

/* ---- calls of the system that fail ---- */

static void look_at_descriptors(bool open[DESCRIPTORS])
{
    for (int fd = 0; fd < DESCRIPTORS; fd++)
        open[fd] = fcntl(fd, F_GETFD) >= 0;
}

/* cmocka's way with signals is for the test alone. */
static void die_of_signals(void)
{
    static const int fatal[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL };

    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        signal(fatal[i], SIG_DFL);
}

/* All calls, until one fails; then dt_finalize, as a program does that ends in order. */
static int disturbed(int rank, void *arg)
{
    const struct trial *t = arg;
    bool before[DESCRIPTORS], after[DESCRIPTORS];
    dt_result_t r = DT_OK;
    size_t i;

    die_of_signals();
    look_at_descriptors(before);
    if (rank == t->victim)
        faults_arm(t->fault, t->k);
    for (i = 0; i < everycalls_n && r == DT_OK; i++)
        r = everycalls[i].make();
    if (rank == t->victim) {
        shared->passages = faults_disarm();
        shared->struck = faults_struck();
    }
    shared->code[rank] = r;
    shared->at[rank] = i - 1;
    snprintf(shared->text[rank], sizeof shared->text[rank], "%s", dt_last_error());
    if (r != DT_OK && dt_rank() >= 0)
        (void)dt_finalize();
    look_at_descriptors(after);
    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        if (after[fd] && !before[fd])
            return LEAK;
    }
    return r != DT_OK && !*shared->text[rank] ? SILENT : 0;
}

/* One word per trial that did not end as it must; "": all is well. */
static const char *verdict(const struct trial *t, bool in_time)
{
    if (!in_time)
        return "somebody hangs";
    for (int rank = 0; rank < result.n; rank++) {
        int status = result.ranks[rank].status, code = shared->code[rank];

        if (!WIFEXITED(status))
            return "a rank crashed";
        if (WEXITSTATUS(status) == LEAK)
            return "a descriptor is left open";
        if (WEXITSTATUS(status) == SILENT)
            return "an error without a text";
        if (status != 0)
            return "a rank failed";
        if (code == EVERYCALL_WRONG)
            return "a wrong result";
        if (code != DT_OK && (t->fault->harmless || !shared->struck))
            return "what the library has to get over ended a call";
        if (t->fault->error == ENOMEM && strstr(shared->text[rank], "damaged"))
            return "a sound checkpoint is called damaged";
    }
    return "";
}

static void show(const struct trial *t, const char *what)
{
    fprintf(stderr, "%s %d at call %u of rank %d: %s\n", t->fault->call, t->fault->error, t->k,
            t->victim, what);
    for (int rank = 0; rank < result.n; rank++)
        fprintf(stderr, "    rank %d: wait status %#x, result %d of %s: %s\n", rank,
                (unsigned)result.ranks[rank].status, shared->code[rank],
                everycalls[shared->at[rank]].name, shared->text[rank]);
}

/* A connection broke and nobody died: then ranks wait a while for somebody to be called dead. */
static bool nobody_died(void)
{
    for (int rank = 0; rank < result.n; rank++) {
        if (shared->code[rank] != DT_ERR_PEER)
            return false;
    }
    return true;
}

/* Every call at first; then fewer and fewer, since what comes late is mostly what came before: all
 * the more where a trial is long. How long it took does not count: a busy machine would skip what
 * another one tries. */
static unsigned next(unsigned k)
{
    if (nobody_died())
        return 8 * k;
    return k < EACH ? k + 1 : k + k * HALVES / 2 + 1;
}

/* Returns how many trials went wrong. */
static int try_fault(const char *hosts, int victim, const struct fault *f)
{
    struct trial t = { .victim = victim, .fault = f, .k = 1 };
    bool talk = getenv("DISTURBED_SHOW") != NULL;
    int wrong = 0;

    do {
        bool in_time = run(hosts, disturbed, &t) == 0;
        const char *what = verdict(&t, in_time);

        if (*what || (talk && shared->struck))
            show(&t, *what ? what : "fine");
        wrong += *what != 0;
        t.k = next(t.k);
        if (!in_time)
            break;
    } while (shared->struck);
    return wrong;
}

/* only: functions, or NULL for all. */
static void try_faults(const char *hosts, int victim, const char *only)
{
    int wrong = 0;

    for (size_t i = 0; i < faults_n; i++) {
        if (!only || strstr(only, faults[i].call))
            wrong += try_fault(hosts, victim, &faults[i]);
    }
    assert_int_equal(wrong, 0);
}

static void faults_on_one_host(void **state)
{
    (void)state;
    try_faults("2", 1, NULL);
}

static void faults_between_hosts(void **state)
{
    (void)state;
    try_faults("2 1", 0, NULL);                        /* it calls the other host */
    try_faults("1 1", 1, "accept4 realloc recv send"); /* it is called */
    testjob_streams(2);
    try_faults("1 1", 0, "connect recv send");
    testjob_streams(0);
}

/* ---- death ---- */

/* Of ranks that have left a barrier: one that died at once could end it for others. */
static dt_result_t meet(void)
{
    dt_result_t r = dt_barrier(DT_WORLD);

    shared->ready++;
    while (r == DT_OK && shared->ready < dt_size())
        usleep(100);
    return r;
}

/* Makes the call in which the victim dies, and, where that ends well without it, a barrier, which
 * cannot. */
static int mortal(int rank, void *arg)
{
    const struct trial *t = arg;
    const struct everycall *call = &everycalls[t->death_in];
    dt_result_t r = t->death_in == 0 ? DT_OK : dt_init();

    if (t->death_in != 0 && r == DT_OK)
        r = meet();
    if (r != DT_OK)
        return 1;
    if (rank == t->victim)
        faults_arm_death(t->k);
    r = call->make();
    if (rank == t->victim) {
        shared->passages = faults_disarm();
        if (t->k)
            raise(SIGKILL); /* this time there were fewer passages */
        return 0;
    }
    if (t->k && r == DT_OK && call->make != dt_finalize)
        r = dt_barrier(DT_WORLD);
    shared->code[rank] = r;
    snprintf(shared->text[rank], sizeof shared->text[rank], "%s", dt_last_error());
    return 0;
}

static bool is_told(int rank, const char *culprit)
{
    return result.ranks[rank].status == 0 && shared->code[rank] == DT_ERR_PEER &&
           strstr(shared->text[rank], culprit) && strstr(shared->text[rank], " died or left");
}

/* The victim may have died when nobody needed it any more. */
static bool all_left(int rank)
{
    return result.ranks[rank].status == 0 && shared->code[rank] == DT_OK;
}

static void die_in(const char *hosts, int victim, size_t call)
{
    struct trial t = { .victim = victim, .death_in = call };
    char culprit[32];
    unsigned passages;

    snprintf(culprit, sizeof culprit, "rank %d ", victim);
    assert_int_equal(run(hosts, mortal, &t), 0);
    passages = shared->passages;
    assert_true(passages > 0);
    for (t.k = 1; t.k <= passages; t.k += 1 + passages / DEATHS) {
        if (run(hosts, mortal, &t) != 0)
            fail_msg("%s on %s, passage %u of %u: somebody hangs", everycalls[call].name, hosts,
                     t.k, passages);
        for (int rank = 0; rank < result.n; rank++) {
            if (rank == victim)
                continue;
            if (is_told(rank, culprit) || (everycalls[call].make == dt_finalize && all_left(rank)))
                continue;
            fail_msg("%s on %s, passage %u of %u: rank %d has wait status %#x, result %d: %s",
                     everycalls[call].name, hosts, t.k, passages, rank,
                     (unsigned)result.ranks[rank].status, shared->code[rank], shared->text[rank]);
        }
    }
}

static void deaths(void **state)
{
    static const struct {
        const char *hosts;
        int victim;
        unsigned streams; /* 0: one */
    } jobs[] = { { "3", 1, 0 }, { "2 1", 0, 0 }, { "1 2", 2, 2 }, { "2 2", 3, 0 } };

    (void)state;
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        testjob_streams(jobs[i].streams);
        for (size_t call = 0; call < everycalls_n; call++)
            die_in(jobs[i].hosts, jobs[i].victim, call);
    }
    testjob_streams(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKS("37", deaths),
        CHECKS("43", faults_on_one_host),
        CHECKS("43", faults_between_hosts),
    };
    int failed;

    shared = testjob_shared(sizeof *shared);
    if (!mkdtemp(checkpoints))
        return 1;
    setenv(DT_ENV_CHECKPOINT_DIR, checkpoints, 1);
    setenv(DT_ENV_JOB_ID, "disturbed", 1);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    nftw(checkpoints, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    rmdir(checkpoints);
    return failed;
}
