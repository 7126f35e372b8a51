#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/wire/env.h"
#include "tests/unit/faults/trial.h"

struct trial_shared *trial_shared;
struct testjob_result trial_result;

static char checkpoints[] = "/dev/shm/dtrun-disturbed.XXXXXX";

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    return at->level > 0 ? remove(path) : 0;
}

static void empty(void)
{
    nftw(checkpoints, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

int trial_set_up(void **state)
{
    (void)state;
    trial_shared = testjob_shared(sizeof *trial_shared);
    if (!mkdtemp(checkpoints))
        return -1;
    setenv(DT_ENV_CHECKPOINT_DIR, checkpoints, 1);
    setenv(DT_ENV_JOB_ID, "disturbed", 1);
    return 0;
}

int trial_tear_down(void **state)
{
    (void)state;
    empty();
    return rmdir(checkpoints);
}

int trial_run(const char *hosts, int (*body)(int, void *), struct trial *trial)
{
    struct testjob_plan plan = { .hosts = hosts, .body = body, .arg = trial };

    memset((void *)trial_shared, 0, sizeof *trial_shared);
    empty();
    return testjob_run(&plan, &trial_result);
}
