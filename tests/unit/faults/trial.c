#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "runtime/wire/env.h"
#include "tests/unit/faults/trial.h"

struct trial_shared *trial_shared;
struct testjob_result trial_result;

/* In memory, because every trial saves. Its lock, which ranks inherit, shows that it is in use. */
static char checkpoints[sizeof "/dev/shm/dtrun-disturbed.XXXXXX"];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    return at->level > 0 ? remove(path) : 0;
}

static void empty(const char *directory)
{
    nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Returns a descriptor of the directory, or -1 if it is gone or another program holds its lock. */
static int lock(const char *directory)
{
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && access(directory, F_OK) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Removes what programs left that were killed. */
static void remove_old(void)
{
    glob_t found;

    if (glob("/dev/shm/dtrun-disturbed.*", GLOB_NOSORT, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        int fd = lock(found.gl_pathv[i]);

        if (fd < 0)
            continue;
        empty(found.gl_pathv[i]);
        rmdir(found.gl_pathv[i]);
        close(fd);
    }
    globfree(&found);
}

int trial_set_up(void **state)
{
    (void)state;
    trial_shared = testjob_shared(sizeof *trial_shared);
    remove_old();
    do { /* another program may remove it before it is locked */
        strcpy(checkpoints, "/dev/shm/dtrun-disturbed.XXXXXX");
        if (!mkdtemp(checkpoints))
            return -1;
    } while (lock(checkpoints) < 0);
    setenv(DT_ENV_CHECKPOINT_DIR, checkpoints, 1);
    setenv(DT_ENV_JOB_ID, "disturbed", 1);
    return 0;
}

int trial_tear_down(void **state)
{
    (void)state;
    empty(checkpoints);
    return rmdir(checkpoints);
}

int trial_run(const char *hosts, int (*body)(int, void *), struct trial *trial)
{
    struct testjob_plan plan = { .hosts = hosts, .body = body, .arg = trial };

    memset((void *)trial_shared, 0, sizeof *trial_shared);
    empty(checkpoints);
    return testjob_run(&plan, &trial_result);
}
