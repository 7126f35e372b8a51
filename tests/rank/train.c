/* train STEPS EVERY [FAULT RANK STEP]: a linked program whose result tells whether every step was
 * done exactly once. Each step adds a sum over all ranks to the state; every EVERY steps (0: never)
 * the state is saved. Rank 0 prints "sum S" at the end.
 *
 * FAULT, in the first generation, at that rank and step: "leave" exits 0 without dt_finalize,
 * "fail" exits 9, "segv" dies of SIGSEGV. "fail-always" does so in every generation. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/dtrun.h"

static int64_t state;

/* What a program does when a call fails: it says so and exits. */
static void must(dt_result_t result, const char *what)
{
    if (result == DT_OK)
        return;
    fprintf(stderr, "%s: %s\n", what, dt_last_error());
    exit(1);
}

static void strike(const char *fault)
{
    if (strcmp(fault, "leave") == 0)
        exit(0);
    if (strcmp(fault, "segv") == 0)
        raise(SIGSEGV);
    exit(9);
}

static void train_step(int64_t step)
{
    int64_t mine = step * (dt_rank() + 1), all = 0;

    must(dt_all_reduce(DT_WORLD, &mine, &all, 1, DT_I64, DT_SUM), "all-reduce");
    state += all;
}

int main(int argc, char **argv)
{
    int64_t steps = argc > 2 ? atoll(argv[1]) : 0, every = argc > 2 ? atoll(argv[2]) : 0, done = -1;
    const char *fault = argc > 5 ? argv[3] : "";

    must(dt_init(), "init");
    if (every > 0) {
        must(dt_checkpoint_register("state", &state, sizeof state), "register");
        must(dt_checkpoint_restore(&done), "restore");
    }
    for (int64_t step = done < 0 ? 1 : done + 1; step <= steps; step++) {
        dt_step(step);
        if (*fault && dt_rank() == atoi(argv[4]) && step == atoll(argv[5]) &&
            (dt_generation() == 1 || strcmp(fault, "fail-always") == 0))
            strike(fault);
        train_step(step);
        if (every > 0 && step % every == 0)
            must(dt_checkpoint_save(step), "save");
    }
    if (dt_rank() == 0)
        printf("sum %" PRId64 "\n", state);
    must(dt_finalize(), "finalize");
    return 0;
}
