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
#include <sys/wait.h>

#include "tests/unit/faults/everycall.h"
#include "tests/unit/faults/failing.h"
#include "tests/unit/faults/trial.h"
#include "tests/unit/sanitized.h"

enum {
    DESCRIPTORS = 256,
    LEAK = 3, /* exit codes of ranks */
    SILENT = 4,
};

/* The first EACH calls fail one by one. After them each fault is later than the last by HALVES
 * halves. */
enum { EACH = SANITIZED ? 1 : 8, HALVES = SANITIZED ? 4 : 1 };

static void look_at_descriptors(bool open[DESCRIPTORS])
{
    for (int fd = 0; fd < DESCRIPTORS; fd++)
        open[fd] = fcntl(fd, F_GETFD) >= 0;
}

/* cmocka's signal handling is for the test process alone. */
static void die_of_signals(void)
{
    static const int fatal[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL };

    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        signal(fatal[i], SIG_DFL);
}

/* Makes all calls until one fails, then dt_finalize, as a program does that ends in order. */
static int disturbed(int rank, void *arg)
{
    const struct trial *t = arg;
    bool before[DESCRIPTORS], after[DESCRIPTORS], all_ours;
    dt_result_t r = DT_OK;
    size_t i;

    die_of_signals();
    all_ours = everycall_prepare();
    look_at_descriptors(before);
    if (rank == t->victim)
        faults_arm(t->fault, t->k);
    for (i = 0; i < everycall_n() && r == DT_OK; i++)
        r = everycall_make(i);
    if (rank == t->victim) {
        trial_shared->passages = faults_disarm();
        trial_shared->triggered = faults_triggered();
    }
    trial_shared->code[rank] = r;
    trial_shared->at[rank] = i - 1;
    snprintf(trial_shared->text[rank], sizeof trial_shared->text[rank], "%s", dt_last_error());
    if (r != DT_OK && dt_rank() >= 0)
        (void)dt_finalize();
    look_at_descriptors(after);
    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        if (all_ours && after[fd] && !before[fd])
            return LEAK;
    }
    return r != DT_OK && !*trial_shared->text[rank] ? SILENT : 0;
}

/* Ranks that may use only one path on GPU memory fail with another code if memory runs out there.
 */
static bool names_lack_of_memory(int rank)
{
    const char *text = trial_shared->text[rank];

    return trial_shared->code[rank] == DT_ERR_NOMEM ||
           (strstr(text, "permits no other path") &&
            (strstr(text, strerror(ENOMEM)) || strstr(text, "the process gets no memory")));
}

static bool is_lack_of_memory(const struct fault *f)
{
    static const char *const calls[] = { "malloc", "calloc", "realloc", "strdup", "mmap" };

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (strcmp(f->call, calls[i]) == 0)
            return true;
    }
    return false;
}

/* One word for a trial that did not end as it must. "": all is well. */
static const char *verdict(const struct trial *t, bool in_time)
{
    if (!in_time)
        return "somebody hangs";
    for (int rank = 0; rank < trial_result.n; rank++) {
        int status = trial_result.ranks[rank].status, code = trial_shared->code[rank];

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
        if (code != DT_OK && (t->fault->harmless || !trial_shared->triggered))
            return "what the library has to get over ended a call";
        if (t->fault->error == ENOMEM && strstr(trial_shared->text[rank], "damaged"))
            return "a sound checkpoint is called damaged";
        if (is_lack_of_memory(t->fault) && rank == t->victim && code != DT_OK &&
            !names_lack_of_memory(rank))
            return "a lack of memory is called something else";
    }
    return "";
}

static void show(const struct trial *t, const char *what)
{
    fprintf(stderr, "%s %d at call %u of rank %d: %s\n", t->fault->call, t->fault->error, t->k,
            t->victim, what);
    for (int rank = 0; rank < trial_result.n; rank++)
        fprintf(stderr, "    rank %d: wait status %#x, result %d of %s: %s\n", rank,
                (unsigned)trial_result.ranks[rank].status, trial_shared->code[rank],
                everycall_name(trial_shared->at[rank]), trial_shared->text[rank]);
}

/* If a connection broke and no rank died, ranks wait a while for a report of a death. */
static bool nobody_died(void)
{
    for (int rank = 0; rank < trial_result.n; rank++) {
        if (trial_shared->code[rank] != DT_ERR_PEER)
            return false;
    }
    return true;
}

/* Every call at first, then fewer and fewer, because late points mostly repeat earlier ones: all
 * the more where a trial is long. The time it takes does not matter: a busy machine would skip what
 * another one tries. */
static unsigned next(unsigned k)
{
    if (nobody_died())
        return 8 * k;
    return k < EACH ? k + 1 : k + k * HALVES / 2 + 1;
}

/* Returns the number of trials that failed. */
static int try_fault(const char *hosts, int victim, const struct fault *f)
{
    struct trial t = { .victim = victim, .fault = f, .k = 1 };
    bool talk = getenv("DISTURBED_SHOW") != NULL;
    int wrong = 0;

    do {
        bool in_time = trial_run(hosts, disturbed, &t) == 0;
        const char *what = verdict(&t, in_time);

        if (*what || (talk && trial_shared->triggered))
            show(&t, *what ? what : "fine");
        wrong += *what != 0;
        t.k = next(t.k);
        if (!in_time)
            break;
    } while (trial_shared->triggered);
    return wrong;
}

void failing_try(const char *hosts, int victim, const char *only)
{
    int wrong = 0;

    for (size_t i = 0; i < faults_n; i++) {
        if (!only || strstr(only, faults[i].call))
            wrong += try_fault(hosts, victim, &faults[i]);
    }
    assert_int_equal(wrong, 0);
}
