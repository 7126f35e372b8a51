/* A rank is killed in each call of the library, at many points. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/checks.h"
#include "tests/unit/faults/everycall.h"
#include "tests/unit/faults/trial.h"
#include "tests/unit/sanitized.h"

enum { DEATHS = SANITIZED ? 2 : 10 }; /* points of a call, about */

/* For ranks that have left a barrier: one that died at once could end it for others. */
static dt_result_t meet(void)
{
    dt_result_t r = dt_barrier(DT_WORLD);

    trial_shared->ready++;
    while (r == DT_OK && trial_shared->ready < dt_size())
        usleep(100);
    return r;
}

/* Makes the call in which the victim dies. If the call succeeds without it, makes a barrier, which
 * cannot. */
static int mortal(int rank, void *arg)
{
    const struct trial *t = arg;
    dt_result_t r = t->death_in == 0 ? DT_OK : dt_init();

    if (t->death_in != 0 && r == DT_OK)
        r = meet();
    if (r != DT_OK)
        return 1;
    if (rank == t->victim)
        faults_arm_death(t->k);
    r = everycall_make(t->death_in);
    if (rank == t->victim) {
        trial_shared->passages = faults_disarm();
        if (t->k)
            raise(SIGKILL); /* this time there were fewer passages */
        return 0;
    }
    if (t->k && r == DT_OK && t->death_in != everycall_n() - 1)
        r = dt_barrier(DT_WORLD);
    trial_shared->code[rank] = r;
    snprintf(trial_shared->text[rank], sizeof trial_shared->text[rank], "%s", dt_last_error());
    return 0;
}

static bool is_told(int rank, const char *culprit)
{
    return trial_result.ranks[rank].status == 0 && trial_shared->code[rank] == DT_ERR_PEER &&
           strstr(trial_shared->text[rank], culprit) &&
           strstr(trial_shared->text[rank], " died or left");
}

/* The victim may have died when no other rank needed it any more. */
static bool all_left(int rank)
{
    return trial_result.ranks[rank].status == 0 && trial_shared->code[rank] == DT_OK;
}

static void die_in(const char *hosts, int victim, size_t call)
{
    struct trial t = { .victim = victim, .death_in = call };
    char culprit[32];
    unsigned passages;

    snprintf(culprit, sizeof culprit, "rank %d ", victim);
    assert_int_equal(trial_run(hosts, mortal, &t), 0);
    passages = trial_shared->passages;
    assert_true(passages > 0);
    for (t.k = 1; t.k <= passages; t.k += 1 + passages / DEATHS) {
        if (trial_run(hosts, mortal, &t) != 0)
            fail_msg("%s on %s, passage %u of %u: somebody hangs", everycall_name(call), hosts, t.k,
                     passages);
        for (int rank = 0; rank < trial_result.n; rank++) {
            if (rank == victim)
                continue;
            if (is_told(rank, culprit) || (call == everycall_n() - 1 && all_left(rank)))
                continue;
            fail_msg("%s on %s, passage %u of %u: rank %d has wait status %#x, result %d: %s",
                     everycall_name(call), hosts, t.k, passages, rank,
                     (unsigned)trial_result.ranks[rank].status, trial_shared->code[rank],
                     trial_shared->text[rank]);
        }
    }
}

static void a_rank_may_die_at_any_point(void **state)
{
    static const struct {
        const char *hosts;
        int victim;
        unsigned streams; /* 0: one */
    } jobs[] = { { "3", 1, 0 }, { "2 1", 0, 0 }, { "1 2", 2, 2 }, { "2 2", 3, 0 } };

    (void)state;
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        testjob_streams(jobs[i].streams);
        for (size_t call = 0; call < everycall_n(); call++)
            die_in(jobs[i].hosts, jobs[i].victim, call);
    }
    testjob_streams(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKS("37", a_rank_may_die_at_any_point),
    };

    return cmocka_run_group_tests(tests, trial_set_up, trial_tear_down);
}
