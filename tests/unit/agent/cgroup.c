/* The cgroup of ranks is removed once it is empty, with those that the ranks have made in it. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launcher/agent/ranks/cgroup.h"
#include "launcher/base/mem.h"
#include "launcher/base/process.h"
#include "tests/unit/unit.h"

/* The agent's loop must not nap. */
int nanosleep(const struct timespec *time, struct timespec *left);

int nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)time;
    (void)left;
    fail_msg("it naps");
    return 0;
}

/* What other agents, which look for orphans, do with a new group before its agent has locked it. */
static enum { THEY_REMOVE_IT, THEY_HAVE_LOCKED_IT, THEY_DO_NOTHING } others = THEY_DO_NOTHING;

char *mkdtemp(char *path);

char *mkdtemp(char *path)
{
    static int calls, lock = -1;
    char *end = strstr(path, "XXXXXX");
    bool made;

    do {
        snprintf(end, 7, "%06u", ((unsigned)getpid() * 100 + (unsigned)calls++) % 1000000);
        made = mkdir(path, 0700) == 0;
    } while (!made && errno == EEXIST);
    if (!made)
        return NULL;
    if (lock >= 0)
        close(lock);
    lock = others == THEY_HAVE_LOCKED_IT ? open(path, O_RDONLY) : -1;
    if (others == THEY_REMOVE_IT)
        rmdir(path);
    if (lock >= 0)
        flock(lock, LOCK_EX);
    others = others == THEY_REMOVE_IT ? THEY_HAVE_LOCKED_IT : THEY_DO_NOTHING;
    return path;
}

struct group {
    int fd;
    char path[DT_CGROUP_PATH];
    pid_t rank;
};

static __attribute__((noreturn)) void be_rank(int group)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(group); /* and the lock on it */
    for (;;)
        pause();
}

static int make_group(void **state)
{
    static struct group g;

    *state = NULL;
    g.fd = dt_cgroup_make(g.path, "unit");
    if (g.fd < 0)
        return 0;
    g.rank = dt_process_fork(g.fd);
    if (g.rank == 0)
        be_rank(g.fd);
    *state = &g;
    return 0;
}

static void end_rank(const struct group *g)
{
    assert_int_equal(kill(g->rank, SIGKILL), 0);
    assert_int_equal(waitpid(g->rank, NULL, 0), g->rank);
}

static void make_inner(const struct group *g, const char *name)
{
    char *path = dt_xasprintf("%s/%s", g->path, name);

    assert_int_equal(mkdir(path, 0755), 0);
    free(path);
}

static struct group *group_or_skip(void **state)
{
    if (!*state) {
        print_message("SKIP: no cgroup (version 2) can be made here\n");
        skip();
    }
    return *state;
}

static void a_group_that_is_in_use_is_not_removed_and_not_waited_for(void **state)
{
    struct group *g = group_or_skip(state);
    char path[DT_CGROUP_PATH];

    memcpy(path, g->path, sizeof path);
    assert_false(dt_cgroup_remove(path));
    assert_string_equal(path, g->path);
    end_rank(g);
    assert_true(dt_cgroup_remove(path));
    assert_string_equal(path, "");
    assert_true(dt_cgroup_remove(path));
    assert_int_not_equal(access(g->path, F_OK), 0);
    close(g->fd);
}

static void groups_that_ranks_have_made_are_removed(void **state)
{
    struct group *g = group_or_skip(state);
    char path[DT_CGROUP_PATH];

    memcpy(path, g->path, sizeof path);
    make_inner(g, "container");
    make_inner(g, "container/inner");
    make_inner(g, ".dtrun-nested");
    assert_false(dt_cgroup_remove(path));
    end_rank(g);
    assert_true(dt_cgroup_remove(path));
    assert_int_not_equal(access(g->path, F_OK), 0);
    close(g->fd);
}

static void a_dead_agents_group_is_removed_once_it_is_empty(void **state)
{
    struct group *g = group_or_skip(state);

    dt_cgroup_end_orphans();
    assert_int_equal(access(g->path, F_OK), 0);
    close(g->fd); /* as when its agent dies */
    alarm(120);   /* a watchdog */
    /* Agents of other tests may look at this group at the same time: only one of them ends it. */
    while (access(g->path, F_OK) == 0) {
        dt_cgroup_end_orphans();
        waitpid(g->rank, NULL, WNOHANG);
        sched_yield();
    }
    alarm(0);
}

static void a_group_that_other_agents_take_for_an_orphan_is_made_again(void **state)
{
    struct group *g = group_or_skip(state), again;

    others = THEY_REMOVE_IT;
    again.fd = dt_cgroup_make(again.path, "unit");
    assert_int_equal(others, THEY_DO_NOTHING);
    assert_true(again.fd >= 0);
    assert_true(dt_cgroup_remove(again.path));
    end_rank(g);
    assert_true(dt_cgroup_remove(g->path));
    close(again.fd);
    close(g->fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_group_that_is_in_use_is_not_removed_and_not_waited_for,
                               make_group),
        cmocka_unit_test_setup(groups_that_ranks_have_made_are_removed, make_group),
        cmocka_unit_test_setup(a_group_that_other_agents_take_for_an_orphan_is_made_again,
                               make_group),
        cmocka_unit_test_setup(a_dead_agents_group_is_removed_once_it_is_empty, make_group),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
