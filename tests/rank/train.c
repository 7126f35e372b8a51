/* train STEPS EVERY: a linked program whose result shows whether every step was done exactly once.
 * Each step adds a sum over all ranks to the state, which is saved every EVERY steps (0: never).
 * Rank 0 prints "sum S", and "sum is right" if that is the sum of the steps.
 *
 * train STEPS EVERY until FILE: ends with the first save after FILE has appeared.
 *
 * train STEPS EVERY FAULT RANK STEP: in the first generation that rank, at that step, exits with 0
 * without dt_finalize ("leave"), exits with 9 ("fail") or dies of SIGSEGV ("segv"). "fail-always"
 * exits with 9 in every generation.
 *
 * With ISAVE=1 in the environment it saves in the background. With ISAVE=idle it does so only if
 * the save before has ended. With SLOW=RANK each step takes that rank 20 ms. With ABSENT=RANK that
 * rank never restores in the first generation. */
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/dtrun.h"

static int64_t state;
static dt_request_t behind; /* the save in the background */

/* Does what programs do when a call fails: prints why and exits. */
static void must(dt_result_t result, const char *what)
{
    if (result == DT_OK)
        return;
    fprintf(stderr, "%s: %s\n", what, dt_last_error());
    exit(1);
}

static int64_t sum_over_ranks(int64_t mine)
{
    int64_t all = 0;

    must(dt_all_reduce(DT_WORLD, &mine, &all, 1, DT_I64, DT_SUM), "all-reduce");
    return all;
}

static void maybe_fail(char **fault, int64_t step)
{
    bool always = strcmp(fault[0], "fail-always") == 0;

    if (dt_rank() != atoi(fault[1]) || step != atoll(fault[2]) || (dt_generation() > 1 && !always))
        return;
    if (strcmp(fault[0], "leave") == 0)
        exit(0);
    if (strcmp(fault[0], "segv") == 0)
        raise(SIGSEGV);
    exit(9);
}

static bool all_are_idle(void)
{
    int done;

    must(dt_test(&behind, &done), "test of save");
    return sum_over_ranks(done) == dt_size();
}

static void save(int64_t step, int64_t every)
{
    const char *isave = getenv("ISAVE");

    if (every == 0 || step % every != 0)
        return;
    if (!isave) {
        must(dt_checkpoint_save(step), "save");
        return;
    }
    if (strcmp(isave, "idle") == 0 && !all_are_idle())
        return;
    must(dt_wait(&behind), "wait for save");
    must(dt_checkpoint_isave(step, &behind), "isave");
}

static void be_slow(void)
{
    const char *slow = getenv("SLOW");

    if (slow && atoi(slow) == dt_rank())
        usleep(20 * 1000);
}

/* All ranks end at the same step, at which rank 0 saw the file. */
static bool is_over(const char *file, int64_t step, int64_t every)
{
    return file && step % every == 0 &&
           sum_over_ranks(dt_rank() == 0 && access(file, F_OK) == 0) > 0;
}

static void maybe_be_absent(void)
{
    const char *absent = getenv("ABSENT");

    while (absent && atoi(absent) == dt_rank() && dt_generation() == 1)
        pause();
}

static void print_result(int64_t steps)
{
    int64_t n = dt_size(), want = n * (n + 1) / 2 * (steps * (steps + 1) / 2);

    printf("sum %" PRId64 "\nsum is %s\n", state, state == want ? "right" : "wrong");
}

int main(int argc, char **argv)
{
    int64_t steps = argc > 2 ? atoll(argv[1]) : 0, every = argc > 2 ? atoll(argv[2]) : 0;
    int64_t step = -1;
    const char *file = argc == 5 ? argv[4] : NULL;

    must(dt_init(), "init");
    if (every > 0) {
        must(dt_checkpoint_register("state", &state, sizeof state), "register");
        maybe_be_absent();
        must(dt_checkpoint_restore(&step), "restore");
    }
    if (step < 0)
        step = 0;
    while (step < steps) {
        dt_step(++step);
        if (argc == 6)
            maybe_fail(argv + 3, step);
        be_slow();
        state += sum_over_ranks(step * (dt_rank() + 1));
        save(step, every);
        if (is_over(file, step, every))
            break;
    }
    must(dt_wait(&behind), "wait for save");
    if (dt_rank() == 0)
        print_result(step);
    must(dt_finalize(), "finalize");
    return 0;
}
